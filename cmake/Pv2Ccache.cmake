# SPDX-License-Identifier: Apache-2.0
#
# Uses ccache when it is installed and no other launcher was chosen. Never required: without it
# builds are only slower. With precompiled headers ccache is told to ignore macros that are defined
# in one, and the macros for the time; otherwise it would compile again (its manual, "Precompiled
# headers").
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(PV2_CCACHE ccache)
  if(PV2_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${PV2_CCACHE}")
  endif()
endif()
