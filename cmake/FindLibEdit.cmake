# SPDX-License-Identifier: Apache-2.0
#
# LibEdit::LibEdit, the editor of command lines. Distributions install it without a CMake package.
find_path(LibEdit_INCLUDE_DIR histedit.h)
find_library(LibEdit_LIBRARY edit)
mark_as_advanced(LibEdit_INCLUDE_DIR LibEdit_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibEdit REQUIRED_VARS LibEdit_LIBRARY LibEdit_INCLUDE_DIR)
if(LibEdit_FOUND AND NOT TARGET LibEdit::LibEdit)
  add_library(LibEdit::LibEdit UNKNOWN IMPORTED)
  set_target_properties(LibEdit::LibEdit PROPERTIES
    IMPORTED_LOCATION "${LibEdit_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LibEdit_INCLUDE_DIR}")
endif()
