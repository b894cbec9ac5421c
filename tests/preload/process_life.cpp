// The beginning and end of a process, forks between, and the settings it reads.
#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

using Words = std::vector<std::string>;

Outcome live(const std::string& name, const Variables& variables = {}) {
  Outcome outcome = run({probe("life"), name}, variables);
  INFO(name);
  CHECK(outcome.code == 0);
  CHECK(outcome.files.empty());
  return outcome;
}

Words words(const std::string& name, const Variables& variables = {}) {
  const Outcome outcome = live(name, variables);
  CHECK(outcome.errors == "");
  return lines(outcome.output);
}

}  // namespace

TEST_CASE("the log is finished once at every orderly end") {
  CHECK(words("unused") == Words{"finish"});
  CHECK(words("exit") == Words{"finish"});
  CHECK(words("quick_exit") == Words{"finish"});
  CHECK(words("unused_quick_exit") == Words{});
  CHECK(words("_exit") == Words{});
}

TEST_CASE("the child of a process that has used CUDA stands aside, any other does not") {
  CHECK(words("fork_before_use") == Words{"between", "finish", "between", "finish"});
  // The child, its own child, their ends, the parent.
  CHECK(words("fork_after_use") ==
        Words{"child", "aside", "child", "aside", "finish", "finish", "between", "finish"});
}

TEST_CASE("a child forked while another thread is in its first use does not hang", "[fork]") {
  for (const std::string& word : words("fork_at_first_use")) CHECK(word != "stuck");
}

TEST_CASE("the mode decides who stands aside") {
  CHECK(words("standing")[0] == "between");
  CHECK(words("standing", {{"FRAGSHIM_MODE", "off"}})[0] == "aside");
  CHECK(words("standing", {{"FRAGSHIM_MODE", "observe"}})[0] == "between");
  CHECK(words("observing", {{"FRAGSHIM_MODE", "observe"}})[0] == "observing");
  CHECK(words("observing")[0] == "serving");
}

TEST_CASE("settings outlive every destructor") {
  const Variables log{{"FRAGSHIM_LOG", "here"}};
  CHECK(words("destructors", log) == Words{"here", "here", "here", "finish"});
}

TEST_CASE("what is wrong with the settings is said once, at the first use") {
  const Variables wrong{{"FRAGSHIM_MODE", "allcoate"}, {"FRAGSHIM_CONF", "max_split_sise_mb:100"}};
  const Words said = lines(live("threads", wrong).errors);
  REQUIRE(said.size() == 2);
  for (const std::string& line : said) CHECK(line.find("fragshim: FRAGSHIM_") == 0);
  CHECK(live("unused", wrong).errors == "");

  Variables checked = wrong;
  checked["FRAGSHIM_FLAGS"] = "";  // as fragrun sets it, which has said it before
  CHECK(live("threads", checked).errors == "");
}

TEST_CASE("a program that sets PyTorch's variable itself is noticed") {
  const Words noticed{"handed",     "overridden", "overridden", "handed",
                      "overridden", "overridden", "handed",     "finish"};
  CHECK(words("overridden") == noticed);
  CHECK(words("overridden", {{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"},
                             {"PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync"},
                             {"FRAGSHIM_HANDED_CONF", "backend:cudaMallocAsync"}}) == noticed);
  for (const std::string& word : words("overridden", {{"FRAGSHIM_TORCH", "native"}})) {
    CHECK(word != "overridden");
  }
}

}  // namespace fragshim::test
