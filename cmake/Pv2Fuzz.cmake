# SPDX-License-Identifier: Apache-2.0
#
# Makes one program of each tests/fuzz/*_fuzz.cc, in build/<preset>/fuzz. Needs clang, whose
# libFuzzer brings main(). tests/nightly.sh runs whatever it finds there. A fuzzer may reach what is
# private to store, where the decoders of foreign bytes live.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR
    "PV2_BUILD_FUZZ needs clang++, and this is ${CMAKE_CXX_COMPILER_ID}. Use the preset `fuzz`.")
endif()
file(GLOB fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cc")
add_custom_target(fuzzers)
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  pv2_link_insider(${name} store)
  target_link_libraries(${name} PRIVATE pv2::engine)
  target_include_directories(${name} PRIVATE
    "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/engine")
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  pv2_flags(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  add_dependencies(fuzzers ${name})
endforeach()
