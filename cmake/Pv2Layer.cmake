# SPDX-License-Identifier: Apache-2.0
#
#   pv2_layer(<name> DEPENDS <layers...> LIBS <external libraries...> [RECURSE | ROOMS])
#
# Makes the static library pv2_<name> (alias pv2::<name>) of the folder it is called in:
#   <name>/*.cc            its sources (RECURSE: those of subfolders too; ROOMS: likewise, and what
#                          is compiled as one is a subfolder)
#   <name>/include         its public headers, the only ones that other layers see
#   <name>/                its private headers
# DEPENDS is the layer's place in the picture: the target sees the public headers of those layers
# (and of what they stand on) and no others, so an upward include does not compile. LIBS are
# private: none of them may show in a public header, and the header check below compiles without
# them.
function(pv2_layer name)
  cmake_parse_arguments(arg "RECURSE;ROOMS" "" "DEPENDS;LIBS" ${ARGN})
  set(here "${CMAKE_CURRENT_SOURCE_DIR}")
  set(target pv2_${name})

  if(arg_RECURSE OR arg_ROOMS)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${here}/*.cc")
  else()
    file(GLOB sources CONFIGURE_DEPENDS "${here}/*.cc")
  endif()
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${here}/include/*.h")
  if(NOT sources)
    # A layer that has only headers stays a static library too, so that what it links and exports
    # does not depend on its contents.
    set(sources "${CMAKE_CURRENT_BINARY_DIR}/${name}_headers_only.cc")
    file(GENERATE OUTPUT "${sources}" CONTENT "// A layer without sources of its own.\n")
  endif()

  add_library(${target} STATIC ${sources})
  add_library(pv2::${name} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${here}/include" FILES ${headers})
  target_include_directories(${target}
    PUBLIC "$<BUILD_INTERFACE:${here}/include>" PRIVATE "${here}")
  list(TRANSFORM arg_DEPENDS PREPEND pv2_)
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_LIBS})
  pv2_flags(${target})
  if(arg_DEPENDS)  # All layers are compiled with the same options, and stand on base.
    pv2_precompile(${target} LIKE pv2_base)
  else()
    pv2_precompile(${target})
  endif()
  if(arg_ROOMS)
    pv2_compile_as_one(${target} ROOMS)
  else()
    pv2_compile_as_one(${target})
  endif()
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name}
    VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL}
    POSITION_INDEPENDENT_CODE ON
    PV2_LIBS "${arg_LIBS}")
  set_property(GLOBAL APPEND PROPERTY PV2_LAYERS ${name})
endfunction()

# Most of the cost of a source is the headers that all of them include. So several are compiled as
# one, and small functions are inlined across them: those of a room, or a dozen of a folder that has
# no rooms. Unnamed namespaces of sources that are compiled as one must not define a name twice.
function(pv2_compile_as_one target)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${PV2_UNITY} UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE 12)
  if(NOT "ROOMS" IN_LIST ARGN)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH room)
    cmake_path(GET room FILENAME room)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${room})
  endforeach()
endfunction()

# Lets a test, benchmark or fuzzer of a layer use what is private to it: the headers next to the
# sources, and the layer's LIBS.
function(pv2_link_insider target layer)
  get_target_property(libs pv2_${layer} PV2_LIBS)
  get_target_property(folder pv2_${layer} SOURCE_DIR)
  target_include_directories(${target} PRIVATE "${folder}")
  target_link_libraries(${target} PRIVATE pv2::${layer} ${libs})
endfunction()
