// Files of the library's own: made where nothing was, and told apart from the program's.
#include "core/record/own_file.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using testing::Folder;

namespace {

/// What there is to say where a file could not be made.
std::string refusal(const std::string& path) {
  char created[PATH_MAX];
  if (create_own_file(path.c_str(), O_WRONLY, created) >= 0) return "created";
  char buffer[128];
  return why_not_created(errno, buffer, sizeof buffer);
}

}  // namespace

TEST_CASE("an own file is nobody else's, and has a name of its own") {
  const Folder folder;
  char created[PATH_MAX];
  for (const char* const name : {"f", "f.1", "f.2"}) {
    const int file = create_own_file(folder.file("f").c_str(), O_WRONLY, created);
    REQUIRE(file >= 0);
    CHECK(created == folder.file(name));
    struct stat status {};
    REQUIRE(fstat(file, &status) == 0);
    CHECK((status.st_mode & 07777) == 0600);
    CHECK((fcntl(file, F_GETFD) & FD_CLOEXEC) != 0);
    close(file);
  }
}

TEST_CASE("an own file takes the place of nothing") {
  const Folder folder;
  REQUIRE(mkdir(folder.file("folder").c_str(), 0700) == 0);
  REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink(folder.write("file", "mine"), folder.file("link"));
  std::filesystem::create_symlink(folder.file("nothing"), folder.file("dangling"));
  CHECK(refusal(folder.file("folder")) == "it is a directory");
  CHECK(refusal(folder.file("pipe")) == "it is no regular file");
  CHECK(refusal("/dev/null") == "it is no regular file");
  CHECK(refusal(folder.file("link")) == "it is a link");
  CHECK(refusal(folder.file("dangling")) == "it is a link");
  CHECK(refusal(folder.file("absent/f")) == "No such file or directory");
  CHECK(refusal(std::string(PATH_MAX, 'x')) == "File name too long");
  CHECK(testing::read_file(folder.file("file")) == "mine");
  CHECK_FALSE(std::filesystem::exists(folder.file("nothing")));
  // A number is stepped over, whatever is there.
  std::filesystem::create_symlink(folder.file("nothing"), folder.file("file.1"));
  char created[PATH_MAX];
  const int file = create_own_file(folder.file("file").c_str(), O_WRONLY, created);
  CHECK(created == folder.file("file.2"));
  close(file);
}

TEST_CASE("an own file is never a standard stream, and leaves nothing where it finds no place") {
  const Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 3; ++i) close(i);
    char created[PATH_MAX];
    const int file = create_own_file(folder.file("f").c_str(), O_WRONLY, created);
    const bool above = file > STDERR_FILENO && fcntl(0, F_GETFD) < 0;
    const rlimit few{16, 16};
    setrlimit(RLIMIT_NOFILE, &few);
    while (open("/dev/null", O_RDONLY) >= 0) continue;
    close(STDERR_FILENO);
    const int none = create_own_file(folder.file("g").c_str(), O_WRONLY, created);
    _exit(above && none == -1 && errno == EMFILE ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK_FALSE(std::filesystem::exists(folder.file("g")));
}

TEST_CASE("a descriptor that has become another file's is not ours") {
  const Folder folder;
  const int file = open(folder.write("a", "ten bytes.").c_str(), O_RDONLY);
  const int other = open(folder.write("b", "").c_str(), O_RDONLY);
  const FileIdentity identity(file);
  off_t size = 0;
  CHECK(identity.holds(file, &size));
  CHECK(size == 10);
  CHECK_FALSE(identity.holds(other));
  dup2(other, file);
  CHECK_FALSE(identity.holds(file));
  close(file);
  CHECK_FALSE(identity.holds(file));
  CHECK_FALSE(FileIdentity(file).holds(file));
  CHECK_FALSE(FileIdentity().holds(other));
  close(other);
}
