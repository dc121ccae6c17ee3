# SPDX-License-Identifier: Apache-2.0
#
# Registers the tests that consume pv2 as its users do. Not under a sanitizer, because the consumer
# would need the same one.
if(PV2_SANITIZE)
  return()
endif()
set(run_consumer "${CMAKE_COMMAND}"
  "-DSOURCE=${CMAKE_CURRENT_LIST_DIR}" "-DWORK=${CMAKE_CURRENT_BINARY_DIR}/consumer"
  "-DPV2_SOURCE=${PROJECT_SOURCE_DIR}" "-DPV2_BINARY=${PROJECT_BINARY_DIR}"
  "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DGENERATOR=${CMAKE_GENERATOR}")
foreach(way IN ITEMS find_package add_subdirectory)
  set(name "consumer: another project builds with pv2 through ${way}")
  add_test(NAME "${name}" COMMAND
    ${run_consumer} -DWAY=${way} -P "${CMAKE_CURRENT_LIST_DIR}/run_consumer.cmake")
  # `once`: no seed changes the test. It compiles, so it has more time than the tests that only run.
  set_tests_properties("${name}" PROPERTIES TIMEOUT 900 LABELS once)
endforeach()
