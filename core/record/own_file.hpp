// A file that this library makes for itself, inside a program that knows nothing of it: logs and
// traces.
#pragma once

#include <sys/types.h>

#include <climits>

namespace fragshim {

/// Creates `path` (mode 0600, close-on-exec) with open's `flags`; where it exists as a file,
/// `path`.1, `path`.2 … are tried. Never follows a link, opens nothing that exists, and takes no
/// descriptor that stands for input, output or errors, though the program has closed it. Puts the
/// name into `created`. Returns -1 and errno where there is no file: see why_not_created.
int create_own_file(const char* path, int flags, char (&created)[PATH_MAX]) noexcept;

/// What an error of create_own_file means; may use the buffer.
const char* why_not_created(int error, char* buffer, std::size_t size) noexcept;

/// Which file a descriptor is of. The program may close our descriptor among all that it finds, and
/// get its number for a file of its own.
class FileIdentity {
 public:
  FileIdentity() = default;
  explicit FileIdentity(int descriptor) noexcept;
  /// Whether the descriptor is still of this file; if so, how long that is.
  bool holds(int descriptor, off_t* size = nullptr) const noexcept;

 private:
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace fragshim
