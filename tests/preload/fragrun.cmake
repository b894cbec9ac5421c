# The wrapper script, installed and in a tree, with a library that does nothing in the shim's place.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/fragrun_nothing.cpp "extern \"C\" int fragrun_nothing() { return 0; }\n")
add_library(fragrun_nothing MODULE ${CMAKE_CURRENT_BINARY_DIR}/fragrun_nothing.cpp)
set_target_properties(fragrun_nothing PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY
                      ${CMAKE_CURRENT_BINARY_DIR})
# fragrun preloads it alone, without a sanitizer's runtime, into fragtool too.
target_compile_options(fragrun_nothing PRIVATE -fno-sanitize=all)
target_link_options(fragrun_nothing PRIVATE -fno-sanitize=all)
foreach(part options running places tools)
  add_test(NAME fragrun_${part} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/fragrun_${part}.sh
           ${PROJECT_SOURCE_DIR}/scripts/fragrun $<TARGET_FILE:fragtool>
           $<TARGET_FILE:fragrun_nothing>)
  set_tests_properties(fragrun_${part} PROPERTIES LABELS preload TIMEOUT 120
                       ENVIRONMENT "ASAN_OPTIONS=verify_asan_link_order=0")
endforeach()
