# The log without a preloaded process: its own sources, linked into a test program.
find_package(nlohmann_json REQUIRED)
file(GLOB log_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shim/log*.cpp
     ${CMAKE_CURRENT_LIST_DIR}/log_tests/*.cpp)
add_executable(log_tests ${log_sources} ${PROJECT_SOURCE_DIR}/shim/trace.cpp)
target_link_libraries(log_tests PRIVATE fragshim_catch fragshim_core fragshim_config
                      nlohmann_json::nlohmann_json)
add_test(NAME log_tests COMMAND log_tests)
# Loggers outlive static destructors on purpose: nothing ever frees them.
set_tests_properties(log_tests PROPERTIES LABELS unit TIMEOUT 120
                     ENVIRONMENT "${sanitizer_options}")

# ... and with one, on the stand-in driver.
if(preloadable AND TARGET standin_driver)
  add_executable(use_cuda ${CMAKE_CURRENT_LIST_DIR}/log_programs/use_cuda.cpp)
  target_link_libraries(use_cuda PRIVATE fragshim_flags ${CMAKE_DL_LIBS})
  target_include_directories(use_cuda SYSTEM PRIVATE ${FRAGSHIM_CUDA_INCLUDE})
  add_dependencies(use_cuda fragshim standin_driver standin_driver_11_0 standin_driver_12_2)
  add_test(NAME log_process
           COMMAND ${CMAKE_CURRENT_LIST_DIR}/log_process_test ${preload}
                   ${PROJECT_BINARY_DIR}/lib/standin $<TARGET_FILE:use_cuda>)
  set_tests_properties(log_process PROPERTIES LABELS preload TIMEOUT 120
                       ENVIRONMENT "${sanitizer_options}")
endif()
