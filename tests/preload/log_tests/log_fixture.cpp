#include "tests/preload/log_tests/log_fixture.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "shim/process.hpp"
#include "shim/torch.hpp"

namespace fragshim {

const Settings& settings() noexcept { return test::mutable_settings(); }
bool overridden_after_start() noexcept { return false; }

namespace test {

Settings& mutable_settings() {
  static Settings settings;
  return settings;
}

void begin_with(const std::string& pattern) {
  mutable_settings() = Settings{};
  mutable_settings().log = pattern;
  mutable_settings().log_interval_ms = 1;
}

void wait_for_interval() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "fragshim-log-XXXXXX").string();
  if (!mkdtemp(name.data())) std::abort();
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

ChildResult in_child(const std::function<void()>& body) {
  std::FILE* const error = std::tmpfile();
  if (!error) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    dup2(fileno(error), STDERR_FILENO);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ChildResult result;
  result.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  std::rewind(error);
  for (int c = std::fgetc(error); c != EOF; c = std::fgetc(error)) {
    result.standard_error += static_cast<char>(c);
  }
  std::fclose(error);
  return result;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

Types types_of(const std::string& path) {
  Types types;
  for (const std::string& line : lines_of(path)) {
    types.push_back(nlohmann::json::parse(line)["type"]);
  }
  return types;
}

log::DeviceInfo fixed_device() { return {0, "Test \"GPU\"", "GPU-1", 80 * GiB, 13000}; }

}  // namespace test
}  // namespace fragshim
