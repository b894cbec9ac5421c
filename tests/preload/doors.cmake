# The doors: one program of the driver API, run preloaded on the stand-in driver, in each mode.
if(preloadable AND TARGET standin_driver)
  file(GLOB door_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/door_*.cpp)
  add_executable(door_tests ${door_sources})
  add_dependencies(door_tests fragshim)
  target_link_libraries(door_tests PRIVATE fragshim_catch fragshim_portable standin_driver
                        ${CMAKE_DL_LIBS} Threads::Threads)
  target_include_directories(door_tests SYSTEM PRIVATE ${FRAGSHIM_CUDA_INCLUDE})
  # lazy: what an older driver lacks is not called there.
  target_link_options(door_tests PRIVATE LINKER:-z,lazy)
  # accept runs them on the GPU's own driver.
  set_target_properties(door_tests PROPERTIES SKIP_BUILD_RPATH ON)

  # door_test(NAME TAG VARIABLES...): the cases with that tag, in that environment.
  function(door_test name tag)
    add_test(NAME door_${name} COMMAND door_tests ${tag})
    set_tests_properties(door_${name} PROPERTIES LABELS "preload;door" TIMEOUT 120 ENVIRONMENT
      "LD_PRELOAD=${preload};LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/lib/standin;FRAGSHIM_LOG=${CMAKE_CURRENT_BINARY_DIR}/door_${name}-%p.jsonl;FRAGSHIM_QUIET=1;${ARGN}")
  endfunction()
  door_test(serve "[serve]")
  door_test(serve_native_policy "[serve]" "FRAGSHIM_CONF=policy:native")
  # cudaMalloc from virtual memory, which has no segments.
  door_test(serve_stitched "[serve]~[segments]" "FRAGSHIM_CONF=policy:stitch")
  door_test(stitched "[stitched]" "FRAGSHIM_CONF=policy:stitch")
  # Under a split limit, what dead streams leave joins to blocks too large for small requests.
  door_test(serve_split_limit "[serve]~[unlimited]" "FRAGSHIM_CONF=max_split_size_mb:32")
  door_test(serve_traced "[serve]" "FRAGSHIM_TRACE=${CMAKE_CURRENT_BINARY_DIR}/door-%p.fstrace")
  door_test(traced "[traced]" "FRAGSHIM_TRACE=${CMAKE_CURRENT_BINARY_DIR}/door-%p.fstrace")
  # Drivers without events of a context, and without ids of contexts.
  foreach(version 12.2 11.4)
    string(REPLACE . _ suffix ${version})
    add_dependencies(door_tests standin_driver_${suffix})
    door_test(serve_${version} "[serve]"
              "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/lib/standin-${version}")
  endforeach()
  foreach(call cuMemAddressReserve cuMemCreate cuMemMap cuMemSetAccess)
    door_test(refused_${call} "[refused]" "STANDIN_FAIL=${call}:every:1:801")
  endforeach()
  door_test(no_addresses "[refused]" "STANDIN_FAIL=cuMemAddressReserve:every:1:2")
  # A driver without stream-ordered memory.
  add_dependencies(door_tests standin_driver_11_0)
  door_test(oldest "[oldest]" "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/lib/standin-11.0")
  door_test(oldest_limit "[pressure]" "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/lib/standin-11.0"
            "FRAGSHIM_CONF=memory_limit_mb:100")
  door_test(newest "[newest]")
  # GPUs without virtual memory management.
  door_test(fallback "[fallback]" "STANDIN_VIRTUAL=0")
  door_test(fallback_stitched "[fallback]" "STANDIN_VIRTUAL=0" "FRAGSHIM_CONF=policy:stitch")
  door_test(observe "[watch]" "FRAGSHIM_MODE=observe")
  door_test(off "[watch]" "FRAGSHIM_MODE=off")
  door_test(torch_native "[watch]" "FRAGSHIM_TORCH=native")
  # Each sign of a tool that watches every allocation: what older and newer sanitizers export, their
  # own settings, an injected library.
  foreach(sign CUDA_INJECTION64_PATH NV_SANITIZER_INJECTION_PORT_RANGE_BEGIN
          NV_SANITIZER_INJECTION_PORT_BASE NV_COMPUTE_SANITIZER_LOCAL_CONNECTION_OVERRIDE)
    door_test(under_${sign} "[watch]" "${sign}=1")
    door_test(serve_under_${sign} "[cut]" "${sign}=1" "FRAGSHIM_MODE=allocate")
  endforeach()
  door_test(serve_under_tool "[serve]" "CUDA_INJECTION64_PATH=/nonexistent"
            "FRAGSHIM_MODE=allocate")
  # No signs: an empty path injects nothing, and names may be alike.
  door_test(serve_under_no_tool "[cut]" "CUDA_INJECTION64_PATH=" "NV_SANITISED=1"
            "MY_NV_SANITIZER_INJECTION_PORT_BASE=1")
  door_test(dedicated "[dedicated]" "FRAGSHIM_IPC=dedicated")
  door_test(strict "[strict]" "FRAGSHIM_STRICT_FREE=1")
  door_test(limit "[limit]" "FRAGSHIM_CONF=memory_limit_mb:100")
  door_test(devices "[devices]" "STANDIN_DEVICES=3")
endif()
