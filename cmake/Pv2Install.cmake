# SPDX-License-Identifier: Apache-2.0
#
# The install rules: libraries, public headers, a package that find_package(pv2) understands, and
# the shell, which is no part of the package. tests/consumer tests it.
include(CMakePackageConfigHelpers)
set(pv2_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/pv2")

get_property(layers GLOBAL PROPERTY PV2_LAYERS)
foreach(layer IN LISTS layers)
  install(TARGETS pv2_${layer} EXPORT pv2Targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endforeach()
install(EXPORT pv2Targets NAMESPACE pv2:: DESTINATION "${pv2_config_dir}")

if(TARGET pv2-shell)
  install(TARGETS pv2-shell RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/pv2Config.cmake.in" "${PROJECT_BINARY_DIR}/pv2Config.cmake"
  INSTALL_DESTINATION "${pv2_config_dir}")
# Before 1.0 any minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/pv2ConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/pv2Config.cmake" "${PROJECT_BINARY_DIR}/pv2ConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindLevelDB.cmake" DESTINATION "${pv2_config_dir}")
