# fragshim_archive: libarchive, which unpacks compressed traces. Static where the static libraries
# are there (Debian: libarchive-dev, liblzma-dev, libzstd-dev, zlib1g-dev), so that fragtool can be
# carried to a GPU machine as one file; else shared.
include(CheckCXXSourceCompiles)
find_package(LibArchive REQUIRED)
add_library(fragshim_archive INTERFACE)
set(static_libraries "")
foreach(name archive lzma zstd z)
  find_library(FRAGSHIM_STATIC_${name} lib${name}.a)
  mark_as_advanced(FRAGSHIM_STATIC_${name})
  list(APPEND static_libraries ${FRAGSHIM_STATIC_${name}})
endforeach()
if(NOT static_libraries MATCHES "NOTFOUND")
  set(CMAKE_REQUIRED_INCLUDES ${LibArchive_INCLUDE_DIRS})
  set(CMAKE_REQUIRED_LIBRARIES ${static_libraries} pthread)
  check_cxx_source_compiles("
    #include <archive.h>
    int main() {
      archive* reader = archive_read_new();
      archive_read_support_filter_gzip(reader);
      archive_read_support_filter_xz(reader);
      archive_read_support_filter_zstd(reader);
      archive_read_support_format_raw(reader);
      archive_read_support_format_empty(reader);
      return archive_read_free(reader);
    }" FRAGSHIM_STATIC_ARCHIVE)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
if(FRAGSHIM_STATIC_ARCHIVE)
  target_include_directories(fragshim_archive SYSTEM INTERFACE ${LibArchive_INCLUDE_DIRS})
  target_link_libraries(fragshim_archive INTERFACE ${static_libraries})
else()
  message(STATUS "fragtool: needs libarchive.so where it runs (liblzma-dev, libzstd-dev and "
                 "zlib1g-dev make it one file)")
  target_link_libraries(fragshim_archive INTERFACE LibArchive::LibArchive)
endif()
