# Real CUDA runtimes are made to look up what they need in the stand-in: the toolkit's, shared and
# static, and pip's older ones, which a preload test fetches (fixture `cudart`). What is not there
# shows as skipped.
get_filename_component(toolkit ${FRAGSHIM_CUDA_INCLUDE} DIRECTORY)
set(fetched ${PROJECT_BINARY_DIR}/cudart)

# cudart_lookups_test(NAME FOLDER COMMAND...): on the driver in that folder.
function(cudart_lookups_test name folder)
  add_test(NAME driver_cudart_${name} COMMAND ${ARGN})
  set_tests_properties(driver_cudart_${name} PROPERTIES LABELS driver TIMEOUT 60
                       SKIP_RETURN_CODE 77 FIXTURES_REQUIRED cudart
                       ENVIRONMENT
                       "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/lib/${folder};${sanitizer_options}")
endfunction()

add_executable(cudart_lookups cudart_lookups.cpp)
target_link_libraries(cudart_lookups PRIVATE fragshim_flags ${CMAKE_DL_LIBS})
add_dependencies(cudart_lookups standin_driver standin_driver_11_4 standin_driver_12_2)
set(cudart_11 ${fetched}/nvidia-cuda-runtime-cu11/nvidia/cuda_runtime/lib/libcudart.so.11.0)
set(cudart_12 ${fetched}/nvidia-cuda-runtime-cu12/nvidia/cuda_runtime/lib/libcudart.so.12)
cudart_lookups_test(11 standin cudart_lookups ${cudart_11})
cudart_lookups_test(12 standin cudart_lookups ${cudart_12})
# Older drivers, if they have look-ups that they could write down.
cudart_lookups_test(11_on_11.4 standin-11.4 cudart_lookups ${cudart_11})
cudart_lookups_test(11_on_12.2 standin-12.2 cudart_lookups ${cudart_11})
cudart_lookups_test(12_on_12.2 standin-12.2 cudart_lookups ${cudart_12})

find_library(FRAGSHIM_CUDART cudart PATHS ${toolkit}/lib64 ${toolkit}/lib)
if(FRAGSHIM_CUDART)
  cudart_lookups_test(toolkit standin cudart_lookups ${FRAGSHIM_CUDART})
endif()

find_library(FRAGSHIM_CUDART_STATIC cudart_static PATHS ${toolkit}/lib64 ${toolkit}/lib)
if(FRAGSHIM_CUDART_STATIC)
  add_executable(cudart_static_lookups cudart_lookups.cpp)
  target_compile_definitions(cudart_static_lookups PRIVATE STATIC_CUDART)
  target_link_libraries(cudart_static_lookups PRIVATE fragshim_flags ${FRAGSHIM_CUDART_STATIC}
                        Threads::Threads rt ${CMAKE_DL_LIBS})
  cudart_lookups_test(static standin cudart_static_lookups)
endif()
