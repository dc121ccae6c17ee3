# SPDX-License-Identifier: Apache-2.0
#
#   pv2_precompile(<target> [FIRST <header> | LIKE <target>])
#
# Parses once the headers from outside pv2 that nearly every source includes: the standard headers
# and, for a test program, those of the test framework (FIRST). None of our own headers is in the
# list, so an edit rebuilds no more than before. Making the precompiled header costs 4 to 5 s of
# processor time, as much as a source. A target that is compiled with the same options as another
# one uses the other's (LIKE); where the options differ, the build fails (-Winvalid-pch). The tidy
# preset turns it off, so that a source that includes less than it uses does not compile there.
option(PV2_PRECOMPILE "Precompile the standard headers of the larger targets"
  ${PROJECT_IS_TOP_LEVEL})

function(pv2_precompile target)
  cmake_parse_arguments(arg "" "FIRST;LIKE" "" ${ARGN})
  if(NOT PV2_PRECOMPILE)
    return()
  endif()
  if(arg_LIKE)
    target_precompile_headers(${target} REUSE_FROM ${arg_LIKE})
  else()
    target_precompile_headers(${target} PRIVATE ${arg_FIRST}
      <algorithm> <array> <atomic> <chrono> <compare> <condition_variable> <deque> <functional>
      <map> <memory> <mutex> <optional> <random> <set> <span> <sstream> <string> <string_view>
      <thread> <tuple> <unordered_map> <utility> <variant> <vector>)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Without the time in it, the same headers give the same file, which ccache compares.
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  else()
    # ccache requires this (its manual, "Precompiled headers").
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()
