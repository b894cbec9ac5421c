# Real CUDA runtimes against the stand-in driver: the toolkit's, shared and static, and pip's older
# ones, which a test of its own fetches. What cannot be had shows as skipped.
set(cudart_folder ${PROJECT_BINARY_DIR}/cudart)
add_test(NAME preload_fetch_cudart
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/lookup_fetch_cudart ${cudart_folder}
                 ${CMAKE_CXX_COMPILER} ${lookup_sources}/cudart.cpp)
set_tests_properties(preload_fetch_cudart PROPERTIES LABELS preload TIMEOUT 120
                     SKIP_RETURN_CODE 77 FIXTURES_SETUP cudart)

# cudart_test(NAME RUNTIME [VERSION]): on the newest driver, or on one of that version. A fixture that
# was skipped counts as set up.
function(cudart_test name runtime)
  add_test(NAME preload_cudart_${name} COMMAND preload_tests "[cudart]")
  set_tests_properties(preload_cudart_${name} PROPERTIES LABELS preload TIMEOUT 120
    ENVIRONMENT "FRAGSHIM_TEST_CUDART=${runtime};FRAGSHIM_TEST_DRIVER=${ARGN};${sanitizer_options}"
    SKIP_REGULAR_EXPRESSION "skipped: " FIXTURES_REQUIRED cudart)
endfunction()

set(cudart_11 ${cudart_folder}/nvidia-cuda-runtime-cu11/nvidia/cuda_runtime/lib/libcudart.so.11.0)
set(cudart_12 ${cudart_folder}/nvidia-cuda-runtime-cu12/nvidia/cuda_runtime/lib/libcudart.so.12)
set(cudart_12_static ${cudart_folder}/linked-12)
foreach(runtime 11 12 12_static)
  cudart_test(${runtime} ${cudart_${runtime}})
endforeach()
# Older drivers, each with the runtimes of its major version and older ones: it runs no newer ones.
foreach(version 11.0 11.2 11.4 12.2)
  cudart_test(11_on_${version} ${cudart_11} ${version})
endforeach()
cudart_test(12_on_12.2 ${cudart_12} 12.2)
cudart_test(12_static_on_12.2 ${cudart_12_static} 12.2)
cudart_test(static ${lookup_folder}/cudart_static)
find_library(FRAGSHIM_CUDART cudart PATHS ${toolkit}/lib64 ${toolkit}/lib)
if(FRAGSHIM_CUDART)
  get_filename_component(cudart_real ${FRAGSHIM_CUDART} REALPATH)
  cudart_test(toolkit ${cudart_real})
endif()
