// Frees and requests at the edge of what is allowed get the driver's own answers.
#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

const Variables on_the_standin{
    {"LD_LIBRARY_PATH", standin_folder()}, {"FRAGSHIM_LOG", "log"}, {"FRAGSHIM_QUIET", "1"}};

/// What the program says under the shim, which must be what it says without.
std::string same_answers(const std::string& name) {
  const std::vector<std::string> command{FRAGSHIM_STRANGE_FREES, name};
  const Outcome alone = run(command, on_the_standin);
  const Outcome served = run_preloaded(command, on_the_standin);
  INFO(name << ": " << served.errors);
  CHECK(alone.code == 0);
  CHECK(served.code == 0);
  CHECK(served.output == alone.output);
  return served.output;
}

bool says(const std::string& output, const std::string& line) {
  return ("\n" + output).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("a free on a capturing stream of what no graph has allocated is refused and undone") {
  if (standin_folder().empty()) return;
  const std::string said = same_answers("in_capture");
  for (const std::string door : {"cudaMalloc", "cudaMallocAsync"}) {
    CHECK(says(said, door + " freed in a capture: 1"));
    CHECK(says(said, door + " the capture ends: 0"));
    CHECK(says(said, door + " the block is alive: 7"));
    CHECK(says(said, door + " freed after the capture: 0"));
  }
}

TEST_CASE("memory that a graph allocates and leaves is freed through either door") {
  if (standin_folder().empty()) return;
  const std::string said = same_answers("graph_memory");
  for (const std::string door : {"cudaFree", "cudaFreeAsync"}) {
    CHECK(says(said, door + " alive: 5"));
    CHECK(says(said, door + " freed: 0"));
    CHECK(says(said, door + " freed twice: 1"));
  }
}

TEST_CASE("requests for nothing, of nothing, and without a context") {
  if (standin_folder().empty()) return;
  const std::string said = same_answers("nothing");
  CHECK(says(said, "cudaMallocAsync of nothing: 0"));
  CHECK(says(said, "cudaMallocAsync without a context: 201"));
}

TEST_CASE("memory older than the library is freed through its doors") {
  if (standin_folder().empty()) return;
  const Outcome outcome = run({FRAGSHIM_STRANGE_FREES, "older", library()}, on_the_standin);
  INFO(outcome.errors);
  CHECK(outcome.code == 0);
  CHECK(outcome.output ==
        "served by the library: 0\n"
        "cudaFree of cudaMalloc's: 0\n"
        "cudaFree of cudaMallocAsync's: 0\n"
        "cudaFreeAsync of cudaMalloc's: 0\n"
        "cudaFreeAsync of cudaMallocAsync's: 0\n"
        "freed twice: 1\n"
        "the library's own: 0\n"
        "synchronized: 0\n");
}

TEST_CASE("a free does not wait for a kernel that waits for the host") {
  if (standin_folder().empty()) return;
  const Outcome outcome = run_preloaded({FRAGSHIM_STRANGE_FREES, "waiting_kernel"}, on_the_standin);
  INFO(outcome.errors);
  CHECK(outcome.code == 0);
  CHECK(outcome.output ==
        "launched: 0\n"
        "cudaFree: 0\n"
        "cudaFreeAsync: 0\n"
        "the kernel waits: 600\n"
        "synchronized: 0\n");
}

}  // namespace fragshim::test
