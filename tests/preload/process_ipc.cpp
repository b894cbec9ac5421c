// Memory shared with a second process, both under the shim: the other one sees the block's bytes,
// or there is no handle and the user hears why. On the stand-in driver, whose handles are real.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

using Words = std::vector<std::string>;

/// The program, its log behind what it says.
Outcome shared(const std::string& way, Variables more = {}) {
  more.insert(
      {{"LD_LIBRARY_PATH", standin_folder()}, {"FRAGSHIM_LOG", "log"}, {"FRAGSHIM_QUIET", "1"}});
  Outcome outcome = run_preloaded({"sh", "-c", "\"$0\" $1 && cat log", probe("ipc"), way}, more);
  INFO(way << ": " << outcome.errors);
  CHECK(outcome.code == 0);
  return outcome;
}

/// What became of each block.
Words blocks(const Outcome& outcome) {
  Words all = lines(outcome.output);
  REQUIRE(all.size() > 3);
  all.resize(3);
  return all;
}

/// The log's only warning: its code, with the text that stderr must have had, too, and once.
std::string warned(const Outcome& outcome) {
  std::string code;
  const Words all = lines(outcome.output);
  for (std::size_t i = 3; i < all.size(); ++i) {
    const auto record = nlohmann::json::parse(all[i], nullptr, false);
    INFO(all[i]);
    REQUIRE(record.is_object());
    if (record["type"] != "warning") continue;
    CHECK(code.empty());
    code = record["code"];
    CHECK(outcome.errors == "fragshim: " + record["text"].get<std::string>() + "\n");
  }
  return code;
}

bool has(const Outcome& outcome, const std::string& part) {
  return outcome.errors.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a block that does not begin its segment gets no handle, and the user hears of it once") {
  if (standin_folder().empty()) return;
  const Outcome outcome = shared("pointer");
  CHECK(blocks(outcome) == Words{"same", "801", "801"});  // CUDA_ERROR_NOT_SUPPORTED
  CHECK(warned(outcome) == "ipc_interior");
  CHECK(has(outcome, "cuIpcGetMemHandle refused"));
  CHECK(has(outcome, "FRAGSHIM_IPC=dedicated"));
}

TEST_CASE("with segments of their own, all blocks are shared with another process") {
  if (standin_folder().empty()) return;
  const Outcome outcome = shared("pointer", {{"FRAGSHIM_IPC", "dedicated"}});
  CHECK(blocks(outcome) == Words(3, "same"));
  CHECK(warned(outcome).empty());
  CHECK(outcome.errors.empty());
}

TEST_CASE("a handle of the allocation's start and a distance from there mean the block") {
  if (standin_folder().empty()) return;
  const Outcome outcome = shared("range");
  CHECK(blocks(outcome) == Words(3, "same"));
  CHECK(outcome.errors.empty());
}

TEST_CASE("stream-ordered memory gets no handle, and the user hears of it once") {
  if (standin_folder().empty()) return;
  const Outcome outcome = shared("ordered");
  CHECK(blocks(outcome) == Words(3, "801"));
  CHECK(warned(outcome) == "ipc_stream_ordered");
  CHECK(has(outcome, "FRAGSHIM_TORCH=native"));
}

}  // namespace fragshim::test
