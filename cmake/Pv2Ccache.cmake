# SPDX-License-Identifier: Apache-2.0
#
# Uses ccache when it is installed and nobody chose another launcher. Never required: without it
# builds are only slower. With precompiled headers it has to be told that a macro which is defined
# in one, and the times of day, are no reason to compile again (its manual, "Precompiled headers").
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(PV2_CCACHE ccache)
  if(PV2_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${PV2_CCACHE}")
  endif()
endif()
