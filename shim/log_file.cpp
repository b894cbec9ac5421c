#include "shim/log_file.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fragshim::log {
namespace {

constexpr int most_numbers = 10000;

std::string error_text(int error) {
  char buffer[128];
  return strerror_r(error, buffer, sizeof buffer);  // the GNU one: returns the text
}

/// What is wrong with the thing that stands at `path`; empty for a regular file.
std::string describe_existing(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return error_text(errno);
  if (S_ISREG(status.st_mode)) return {};
  if (S_ISDIR(status.st_mode)) return "it is a directory";
  if (S_ISLNK(status.st_mode)) return "it is a link";
  return "it is no regular file";
}

OpenedFile refusal(const std::string& path, const std::string& why) {
  return {-1, {}, "cannot create the log " + path + ": " + why + "; going on without it"};
}

}  // namespace

OpenedFile create_log_file(const std::string& path) {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
  for (int number = 0; number < most_numbers; ++number) {
    const std::string name = number == 0 ? path : path + '.' + std::to_string(number);
    const int descriptor = open(name.c_str(), flags, S_IRUSR | S_IWUSR);
    if (descriptor >= 0) return {descriptor, name, {}};
    if (errno != EEXIST) return refusal(path, error_text(errno));
    // Only the name the user gave can be something odd; numbered ones are stepped over.
    const std::string odd = number == 0 ? describe_existing(name) : std::string();
    if (!odd.empty()) return refusal(path, odd);
  }
  return refusal(path, "too many logs of that name");
}

void write_stderr(std::string_view line) noexcept {
  const NoCancel no_cancel;
  char buffer[2048];
  const std::size_t length = line.size() < sizeof buffer ? line.size() : sizeof buffer - 1;
  std::memcpy(buffer, line.data(), length);
  buffer[length] = '\n';
  const int previous_error = errno;
  if (write(STDERR_FILENO, buffer, length + 1) < 0) {
    // Nobody is left to be told.
  }
  errno = previous_error;
}

NoCancel::NoCancel() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous_); }

NoCancel::~NoCancel() { pthread_setcancelstate(previous_, nullptr); }

}  // namespace fragshim::log
