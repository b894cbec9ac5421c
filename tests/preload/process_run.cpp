#include "tests/preload/process_run.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "shim/driver.hpp"

namespace fragshim::test {
namespace {

constexpr unsigned int longest_run_s = 60;

std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A folder that goes when the test is done with it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "fragshim-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed");
    path_ = name;
    std::filesystem::create_directory(work());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path work() const { return path_ / "work"; }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void become(std::vector<std::string> command, std::vector<std::string> environment,
                         const Folder& folder) {
  const auto redirect = [](const std::string& file, int flags, int to) {
    const int opened = open(file.c_str(), flags, 0600);
    if (opened < 0 || dup2(opened, to) < 0) _exit(126);
    close(opened);
  };
  redirect("/dev/null", O_RDONLY, STDIN_FILENO);
  redirect((folder / "out").string(), O_WRONLY | O_CREAT, STDOUT_FILENO);
  redirect((folder / "err").string(), O_WRONLY | O_CREAT, STDERR_FILENO);
  if (chdir(folder.work().c_str()) != 0) _exit(126);
  alarm(longest_run_s);
  execvpe(command[0].c_str(), pointers(command).data(), pointers(environment).data());
  _exit(127);
}

/// What must be loaded before a library that is built with it; empty without a sanitizer.
std::string sanitizer_runtime() { return FRAGSHIM_SANITIZER_RUNTIME; }

}  // namespace

Outcome run(const std::vector<std::string>& command, const Variables& variables) {
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  for (const std::string name : {"PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    const char* const value = std::getenv(name.c_str());
    if (!variables.count(name) && value) environment.push_back(name + "=" + value);
  }

  const Folder folder;
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) become(command, environment, folder);
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");

  Outcome outcome;
  outcome.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  outcome.output = contents(folder / "out");
  outcome.errors = contents(folder / "err");
  for (const auto& entry : std::filesystem::directory_iterator(folder.work())) {
    outcome.files.push_back(entry.path().filename().string());
  }
  return outcome;
}

Outcome run_preloaded(const std::vector<std::string>& command, Variables variables) {
  std::string& preload = variables["LD_PRELOAD"];
  preload = preload_list({library(), preload});
  return run(command, variables);
}

std::string library() { return FRAGSHIM_LIBRARY; }
std::string probe(const std::string& name) { return FRAGSHIM_PROBES "/" + name; }
std::string standin_folder() { return FRAGSHIM_STANDIN; }

std::string preload_list(const std::vector<std::string>& libraries) {
  std::string list = sanitizer_runtime();
  for (const std::string& library : libraries) {
    if (!list.empty() && !library.empty()) list += ':';
    list += library;
  }
  return list;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

std::vector<std::string> hooked_names() {
  std::vector<std::string> names{
#define FRAGSHIM_NAME(name, ...) #name,
      FRAGSHIM_HOOKED(FRAGSHIM_NAME)
#undef FRAGSHIM_NAME
  };
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace fragshim::test
