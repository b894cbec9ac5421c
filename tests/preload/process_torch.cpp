// What PyTorch will read, in the process itself and in its children.
#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

const std::string handed = "backend:cudaMallocAsync";
const std::string cuda_conf = "PYTORCH_CUDA_ALLOC_CONF";
const std::string new_conf = "PYTORCH_ALLOC_CONF";

/// The variables of a process, of those that concern PyTorch, read by a program that prints them
/// after `prefix` (words of a shell command, such as an assignment).
Variables seen(const Variables& variables, const std::string& prefix = "") {
  const Outcome outcome = run_preloaded({"bash", "-c", prefix + " env"}, variables);
  CHECK(outcome.code == 0);
  CHECK(outcome.errors == "");
  Variables result;
  for (const std::string& line : lines(outcome.output)) {
    const std::string name = line.substr(0, line.find('='));
    const bool concerns =
        name.find("ALLOC_CONF") != std::string::npos || name.find("FRAGSHIM_") != std::string::npos;
    if (concerns) result[name] = line.substr(name.size() + 1);
  }
  return result;
}

Variables just_handed() {
  return {{cuda_conf, handed}, {new_conf, handed}, {"FRAGSHIM_HANDED_CONF", handed}};
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Variables handed_in_place_of(const std::string& text, const std::string& variable) {
  return with(just_handed(),
              {{"FRAGSHIM_TORCH_CONF", text}, {"FRAGSHIM_TORCH_CONF_SOURCE", variable}});
}

}  // namespace

TEST_CASE("PyTorch is handed the asynchronous backend") {
  CHECK(seen({}) == just_handed());
  CHECK(seen({{cuda_conf, "max_split_size_mb:100"}}) ==
        handed_in_place_of("max_split_size_mb:100", cuda_conf));
  CHECK(seen({{new_conf, "max_split_size_mb:100"}}) ==
        handed_in_place_of("max_split_size_mb:100", new_conf));
  CHECK(seen({{cuda_conf, ""}}) == handed_in_place_of("", cuda_conf));
}

TEST_CASE("Python's os.environ shows it, with no other variable set too") {
  const std::string script =
      "import os; print(os.environ['PYTORCH_CUDA_ALLOC_CONF'], os.environ['PYTORCH_ALLOC_CONF'])";
  const Outcome outcome =
      run({"env", "-i", "LD_PRELOAD=" + preload_list(), "python3", "-c", script});
  CHECK(outcome.errors == "");
  CHECK(outcome.output == handed + " " + handed + "\n");
}

TEST_CASE("settings for host memory go on to PyTorch") {
  const std::string host = "pinned_use_background_threads:True";
  const Variables result = seen({{cuda_conf, "max_split_size_mb:100," + host}});
  CHECK(result.at(cuda_conf) == handed + "," + host);
  CHECK(result.at("FRAGSHIM_TORCH_CONF") == "max_split_size_mb:100," + host);
}

TEST_CASE("PyTorch keeps its own allocator where that is meant") {
  const auto variables = GENERATE(values<Variables>({
      {{"FRAGSHIM_TORCH", "native"}},
      {{"FRAGSHIM_MODE", "off"}},
      {{"FRAGSHIM_MODE", "observe"}},
      {{"FRAGSHIM_MODE", "off"}, {"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:100"}},
      {{"PYTORCH_CUDA_ALLOC_CONF", "backend:native,max_split_size_mb:100"}},
      {{"PYTORCH_ALLOC_CONF", "backend:native"}},
      {{"FRAGSHIM_CONF", "backend:native"}},
  }));
  CHECK(seen(variables) == variables);
}

TEST_CASE("FRAGSHIM_TORCH=async wins over the backend in the conf string") {
  const Variables result = seen({{cuda_conf, "backend:native"}, {"FRAGSHIM_TORCH", "async"}});
  CHECK(result.at(cuda_conf) == handed);
  CHECK(result.at("FRAGSHIM_TORCH_CONF") == "backend:native");
}

TEST_CASE("a child finds the user's own conf string again, or a new one") {
  const Variables parent{{cuda_conf, "max_split_size_mb:100"}};
  const Variables first = handed_in_place_of("max_split_size_mb:100", cuda_conf);
  CHECK(seen(parent, "bash -c 'bash -c env;:';:;") == first);
  CHECK(seen(parent, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:200") ==
        handed_in_place_of("max_split_size_mb:200", cuda_conf));
  CHECK(seen(parent, "PYTORCH_CUDA_ALLOC_CONF=backend:native").at(cuda_conf) == "backend:native");
}

TEST_CASE("a child that is to have nothing to do with it gets the user's own back") {
  const std::string off = GENERATE("FRAGSHIM_MODE", "FRAGSHIM_TORCH");
  const std::string value = off == "FRAGSHIM_MODE" ? "off" : "native";
  const std::string prefix = off + "=" + value;
  CHECK(seen({}, prefix) == Variables{{off, value}});
  CHECK(seen({{new_conf, "max_split_size_mb:100"}}, prefix) ==
        Variables{{off, value}, {new_conf, "max_split_size_mb:100"}});
}

}  // namespace fragshim::test
