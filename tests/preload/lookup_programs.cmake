# The programs and libraries that the preload tests run, in ${lookup_folder}; ${lookup_targets}.
set(lookup_folder ${CMAKE_CURRENT_BINARY_DIR}/lookup)
set(lookup_targets "")
set(lookup_sources ${CMAKE_CURRENT_SOURCE_DIR}/lookup_programs)

# Each is a foreign one: default visibility, and no library of ours.
function(lookup_finish target folder)
  target_link_libraries(${target} PRIVATE fragshim_flags ${CMAKE_DL_LIBS} ${ARGN})
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET default
                        LIBRARY_OUTPUT_DIRECTORY ${folder} RUNTIME_OUTPUT_DIRECTORY ${folder}
                        BUILD_RPATH "\$ORIGIN")
  set(lookup_targets ${lookup_targets} ${target} PARENT_SCOPE)
endfunction()

foreach(name second lookalike plugin_dependency plugin late early)
  add_library(lookup_${name} SHARED ${lookup_sources}/${name}.cpp)
  set_target_properties(lookup_${name} PROPERTIES OUTPUT_NAME ${name})
  lookup_finish(lookup_${name} ${lookup_folder})
endforeach()
target_link_libraries(lookup_plugin PRIVATE lookup_plugin_dependency)
# Its dlsym is asked before a sanitizer's runtime has begun, as shim/lookup.cpp is.
target_compile_options(lookup_second PRIVATE -fno-sanitize=all)

foreach(name probe table cudart)
  add_executable(lookup_${name} ${lookup_sources}/${name}.cpp)
  set_target_properties(lookup_${name} PROPERTIES OUTPUT_NAME ${name})
  lookup_finish(lookup_${name} ${lookup_folder})
endforeach()
# Reads all that a runtime has, what lies between its variables too.
target_compile_options(lookup_cudart PRIVATE -fno-sanitize=all)

# Drivers that only forward, as WSL2's does; `old` knows one form of cuGetProcAddress.
foreach(kind forwarding old)
  add_library(lookup_${kind} SHARED ${lookup_sources}/forwarding.cpp)
  add_library(lookup_${kind}_inner SHARED ${lookup_sources}/inner.cpp)
  set_target_properties(lookup_${kind} PROPERTIES OUTPUT_NAME cuda SOVERSION 1)
  set_target_properties(lookup_${kind}_inner PROPERTIES OUTPUT_NAME inner)
  # As the real driver: what is inside finds itself, whatever is preloaded.
  target_link_options(lookup_${kind} PRIVATE LINKER:-Bsymbolic-functions)
  target_link_options(lookup_${kind}_inner PRIVATE LINKER:-Bsymbolic-functions)
  lookup_finish(lookup_${kind} ${lookup_folder}/${kind})
  lookup_finish(lookup_${kind}_inner ${lookup_folder}/${kind})
endforeach()
target_compile_definitions(lookup_old PRIVATE FORWARDING_OLD)
target_compile_definitions(lookup_old_inner PRIVATE FORWARDING_OLD)

# The toolkit's static CUDA runtime, in a program.
get_filename_component(toolkit ${FRAGSHIM_CUDA_INCLUDE} DIRECTORY)
find_library(FRAGSHIM_CUDART_STATIC libcudart_static.a
             PATHS ${toolkit}/lib64 ${toolkit}/lib ${toolkit}/targets/${CMAKE_SYSTEM_PROCESSOR}-linux/lib)
if(FRAGSHIM_CUDART_STATIC)
  add_executable(lookup_cudart_static ${lookup_sources}/cudart.cpp)
  target_compile_definitions(lookup_cudart_static PRIVATE CUDART_LINKED)
  target_compile_options(lookup_cudart_static PRIVATE -fno-sanitize=all)
  set_target_properties(lookup_cudart_static PROPERTIES OUTPUT_NAME cudart_static)
  lookup_finish(lookup_cudart_static ${lookup_folder})
  target_link_libraries(lookup_cudart_static PRIVATE ${FRAGSHIM_CUDART_STATIC} Threads::Threads rt)
endif()
