# The log without a preloaded process: its own sources, linked into a test program.
find_package(nlohmann_json REQUIRED)
file(GLOB log_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shim/log*.cpp
     ${CMAKE_CURRENT_LIST_DIR}/log_tests/*.cpp)
add_executable(log_tests ${log_sources} ${PROJECT_SOURCE_DIR}/shim/trace.cpp)
target_link_libraries(log_tests PRIVATE fragshim_catch fragshim_core fragshim_config
                      nlohmann_json::nlohmann_json)
add_test(NAME log_tests COMMAND log_tests)
set_tests_properties(log_tests PROPERTIES LABELS unit TIMEOUT 120)
