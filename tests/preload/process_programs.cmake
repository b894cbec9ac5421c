# shim/process.cpp and shim/torch.cpp in a program of their own, beside the other probes.
find_package(Threads REQUIRED)
add_executable(process_life process_programs/life.cpp
               ${PROJECT_SOURCE_DIR}/shim/process.cpp ${PROJECT_SOURCE_DIR}/shim/torch.cpp)
target_link_libraries(process_life PRIVATE fragshim_flags fragshim_core fragshim_config Threads::Threads)
set_target_properties(process_life PROPERTIES OUTPUT_NAME life RUNTIME_OUTPUT_DIRECTORY ${lookup_folder})
list(APPEND lookup_targets process_life)
