// A report from any bytes as a log.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/analyze/byte_stream.hpp"
#include "core/analyze/input_error.hpp"
#include "core/analyze/report.hpp"

using namespace fragshim;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const ProcessReport process =
        read_log(ByteStream::of({reinterpret_cast<const char*>(data), size}, "fuzz.jsonl"));
    require(process.failures.size() <= ProcessReport::most_failures);
    const std::vector<ProcessReport> twice = {process, process};
    require(!report_text(twice).empty());
    const auto json = report_json(twice);
    const std::string text =
        json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    require(nlohmann::json::accept(text));
    require(json["processes"].size() == 2);
  } catch (const InputError&) {
  }
  return 0;
}
