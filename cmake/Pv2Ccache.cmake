# SPDX-License-Identifier: Apache-2.0
#
# Uses ccache when it is installed and nobody chose another launcher. Never required: without it
# builds are only slower.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(PV2_CCACHE ccache)
  if(PV2_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${PV2_CCACHE}")
  endif()
endif()
