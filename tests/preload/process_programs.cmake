# shim/process.cpp and what it needs in a program of its own, beside the other probes.
find_package(Threads REQUIRED)
add_executable(process_life process_programs/life.cpp
               ${PROJECT_SOURCE_DIR}/shim/process.cpp ${PROJECT_SOURCE_DIR}/shim/torch.cpp
               ${PROJECT_SOURCE_DIR}/shim/log_file.cpp)
target_link_libraries(process_life PRIVATE fragshim_flags fragshim_core fragshim_config Threads::Threads)
set_target_properties(process_life PROPERTIES OUTPUT_NAME life RUNTIME_OUTPUT_DIRECTORY ${lookup_folder})
list(APPEND lookup_targets process_life)

# Users of the driver API, to be run on the stand-in driver.
foreach(name endings faults ipc log_faults no_memory)
  add_executable(process_${name} process_programs/${name}.cpp)
  target_link_libraries(process_${name} PRIVATE fragshim_flags ${CMAKE_DL_LIBS} Threads::Threads)
  target_include_directories(process_${name} SYSTEM PRIVATE ${FRAGSHIM_CUDA_INCLUDE})
  set_target_properties(process_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${lookup_folder})
  list(APPEND lookup_targets process_${name})
endforeach()

# One that is run on a GPU, too.
add_executable(strange_frees process_programs/strange_frees.cpp)
target_link_libraries(strange_frees PRIVATE fragshim_flags fragshim_portable ${CMAKE_DL_LIBS})
target_include_directories(strange_frees SYSTEM PRIVATE ${FRAGSHIM_CUDA_INCLUDE})
list(APPEND lookup_targets strange_frees)
