# SPDX-License-Identifier: Apache-2.0
#
# Finds LevelDB by its header and library and makes LevelDB::LevelDB. It does not use the package's
# own CMake file, because Debian's makes every user link snappy, whose headers the package does not
# install. Fails with the usual "could not find" message.
find_path(LevelDB_INCLUDE_DIR leveldb/db.h)
find_library(LevelDB_LIBRARY leveldb)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LevelDB REQUIRED_VARS LevelDB_LIBRARY LevelDB_INCLUDE_DIR)
mark_as_advanced(LevelDB_INCLUDE_DIR LevelDB_LIBRARY)
if(LevelDB_FOUND AND NOT TARGET LevelDB::LevelDB)
  add_library(LevelDB::LevelDB UNKNOWN IMPORTED)
  set_target_properties(LevelDB::LevelDB PROPERTIES
    IMPORTED_LOCATION "${LevelDB_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${LevelDB_INCLUDE_DIR}")
endif()
