# SPDX-License-Identifier: Apache-2.0
#
# Each tests/fuzz/*_fuzz.cc is a harness: one function that takes any bytes. With PV2_BUILD_FUZZ it
# becomes a fuzzer in build/<preset>/fuzz, which tests/nightly.sh runs; that needs clang, whose
# libFuzzer has a main(). With PV2_BUILD_TESTS it becomes a test that passes a few inputs, so that a
# harness that no longer fits the code is found at once. A harness may use what is private to
# store, idempotency, rpc and engine, and shell_*_fuzz.cc what is the shell's, because the decoders
# of unchecked bytes are there. step_log_fuzz.cc has a file system in memory.
if(PV2_BUILD_FUZZ AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR
    "PV2_BUILD_FUZZ needs clang++, and this is ${CMAKE_CXX_COMPILER_ID}. Use the preset `fuzz`.")
endif()

function(pv2_fuzz_program name)
  add_executable(${name} ${ARGN})
  pv2_link_insider(${name} store)
  pv2_link_insider(${name} idempotency)
  pv2_link_insider(${name} rpc)
  target_link_libraries(${name} PRIVATE pv2::engine)
  target_include_directories(${name} PRIVATE
    "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/engine")
  if(name MATCHES "^shell_")
    target_link_libraries(${name} PRIVATE pv2_shell_parts)
  endif()
  if(name MATCHES "^step_log_")
    target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/crash_env.cc")
    target_link_libraries(${name} PRIVATE LevelDB::LevelDB fmt::fmt Boost::headers)
  endif()
  pv2_flags(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
endfunction()

file(GLOB fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cc")
add_custom_target(fuzzers)
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  if(name MATCHES "^shell_" AND NOT TARGET pv2_shell_parts)
    continue()
  endif()
  if(PV2_BUILD_FUZZ)
    pv2_fuzz_program(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers ${name})
  endif()
  if(PV2_BUILD_TESTS)
    pv2_fuzz_program(${name}_test ${source} "${PROJECT_SOURCE_DIR}/tests/fuzz/any_bytes.cc")
    target_compile_options(${name}_test PRIVATE ${PV2_TEST_OPTIONS})
    add_test(NAME "fuzz: ${name} finds nothing in a few inputs" COMMAND ${name}_test)
    set_tests_properties("fuzz: ${name} finds nothing in a few inputs" PROPERTIES
      LABELS once TIMEOUT 300)
  endif()
endforeach()
