# SPDX-License-Identifier: Apache-2.0
#
# One test, run by `cmake -P`: installs pv2 into a folder of its own (or uses its sources), then
# configures, builds and runs the consumer. It begins with empty folders every time; a step that
# fails ends the test.
set(work "${WORK}/${WAY}")
file(REMOVE_RECURSE "${work}")

if(WAY STREQUAL "find_package")
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${PV2_BINARY}" --prefix "${work}/prefix"
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  set(how "-DCMAKE_PREFIX_PATH=${work}/prefix")
else()
  set(how "-DPV2_SUBDIRECTORY=${PV2_SOURCE}")
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${work}/build" -G "${GENERATOR}"
  "-DCMAKE_CXX_COMPILER=${COMPILER}" "${how}" COMMAND_ERROR_IS_FATAL ANY)
set(programs consumer)
if(WAY STREQUAL "find_package")
  list(APPEND programs consumer_test)
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${work}/build" --target ${programs}
  COMMAND_ERROR_IS_FATAL ANY)
foreach(program IN LISTS programs)
  execute_process(COMMAND "${work}/build/${program}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
