# SPDX-License-Identifier: Apache-2.0
#
# The compile flags of our own targets. They do not reach the targets of others: an embedding
# project gets our language level and nothing else. `pv2_flags(target)` is called for every library,
# example, test and benchmark of this tree.

# Sanitizers change the code of everything that is linked together, so their flags are set for the
# directory and not for each target.
if(PV2_SANITIZE)
  add_compile_options(-fsanitize=${PV2_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PV2_SANITIZE})
  if(PV2_SANITIZE MATCHES "address")
    # If a span or a vector is read beyond its end, the sanitizer notices only what lies beyond the
    # block of memory, too.
    add_compile_definitions(_GLIBCXX_ASSERTIONS)
  endif()
  if(PV2_SANITIZE MATCHES "undefined")
    # A finding must fail the test that made it; the default only prints and goes on.
    add_compile_options(-fno-sanitize-recover=undefined)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 17)
      # The check of function types puts data before each function, which these clangs cannot do for
      # coroutines: "Cannot represent a difference across sections".
      add_compile_options(-fno-sanitize=function)
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The checks that a sanitizer inserts hide initialisations from g++, which then warns about code
    # of the standard library (g++'s manual says so under -fsanitize); other builds keep the
    # warning.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

function(pv2_flags target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  # The deprecated half of Asio's interface is refused.
  target_compile_definitions(${target} PRIVATE BOOST_ASIO_NO_DEPRECATED)
  # -Wshadow stays off: g++ 12 also reports constructor parameters that are named like a member
  # function.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -Wthread-safety)
  endif()
  if(PV2_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
