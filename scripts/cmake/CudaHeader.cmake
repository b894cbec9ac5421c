# Finds a folder with cuda.h: CUDA_HOME or CUDA_PATH, a toolkit, the build folder (where
# scripts/install puts pip's CUDA headers), pip's nvidia packages, the system. Sets FRAGSHIM_CUDA_INCLUDE.
file(GLOB _pip_includes
     ${PROJECT_BINARY_DIR}/cuda-headers/nvidia/*/include
     ${PROJECT_SOURCE_DIR}/build/cuda-headers/nvidia/*/include)
find_package(Python3 QUIET COMPONENTS Interpreter)
if(Python3_FOUND)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import site,sys;print(';'.join(site.getsitepackages()+[site.getusersitepackages()]))"
                  OUTPUT_VARIABLE _sites OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  foreach(_site IN LISTS _sites)
    file(GLOB _found ${_site}/nvidia/*/include)
    list(APPEND _pip_includes ${_found})
  endforeach()
endif()
file(GLOB _toolkits /usr/local/cuda*/include /opt/cuda*/include)
find_path(FRAGSHIM_CUDA_INCLUDE cuda.h
          HINTS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include
          PATHS /usr/local/cuda/include ${_toolkits} ${_pip_includes})
if(NOT FRAGSHIM_CUDA_INCLUDE)
  set(FRAGSHIM_CUDA_INCLUDE "")
  message(WARNING "cuda.h not found: libfragshim.so and what needs it are left out. Install a CUDA toolkit "
                  "(Debian, Ubuntu: apt install nvidia-cuda-toolkit), set CUDA_HOME, or "
                  "pip install nvidia-cuda-runtime; replay and tune are built all the same.")
else()
  message(STATUS "cuda.h: ${FRAGSHIM_CUDA_INCLUDE}")
endif()
