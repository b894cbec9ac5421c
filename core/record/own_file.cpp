#include "core/record/own_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace fragshim {
namespace {

constexpr int names_tried = 10'000;

/// The error that says what stands at `path`; 0 for a regular file.
int odd_thing_at(const char* path) noexcept {
  struct stat status {};
  if (lstat(path, &status) != 0) return errno;
  if (S_ISREG(status.st_mode)) return 0;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  return S_ISLNK(status.st_mode) ? ELOOP : ENXIO;
}

/// The same file under a number from 3 on; -1 and errno where there is none, and no file either.
int above_standard_streams(int descriptor, const char* path) noexcept {
  if (descriptor > STDERR_FILENO) return descriptor;
  const int above = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(descriptor);
  if (above < 0) unlink(path);
  errno = error;
  return above;
}

}  // namespace

int create_own_file(const char* path, int flags, char (&created)[PATH_MAX]) noexcept {
  for (int i = 0; i < names_tried; ++i) {
    const int length = i == 0 ? std::snprintf(created, sizeof created, "%s", path)
                              : std::snprintf(created, sizeof created, "%s.%d", path, i);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof created) {
      errno = ENAMETOOLONG;
      return -1;
    }
    const int file = open(created, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0) return above_standard_streams(file, created);
    if (errno != EEXIST) return -1;
    // Only the name the user gave can be something odd; numbered ones are stepped over.
    const int odd = i == 0 ? odd_thing_at(created) : 0;
    if (odd != 0) {
      errno = odd;
      return -1;
    }
  }
  errno = EEXIST;
  return -1;
}

const char* why_not_created(int error, char* buffer, std::size_t size) noexcept {
  switch (error) {
    case EISDIR:
      return "it is a directory";
    case ELOOP:
      return "it is a link";
    case ENXIO:
      return "it is no regular file";
    case EEXIST:
      return "too many files of that name";
    default:
      return strerror_r(error, buffer, size);  // the GNU one: returns the text
  }
}

FileIdentity::FileIdentity(int descriptor) noexcept {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

bool FileIdentity::holds(int descriptor, off_t* size) const noexcept {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return false;
  if (size != nullptr) *size = status.st_size;
  return status.st_dev == device_ && status.st_ino == inode_;
}

}  // namespace fragshim
