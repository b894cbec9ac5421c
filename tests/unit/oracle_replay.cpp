// What PyTorch 2.11's own allocator did on an H200, row by row, field by field: the replay of the
// native policy must do the same.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/conf_string.hpp"
#include "core/analyze/event_source.hpp"
#include "core/analyze/replay.hpp"
#include "tests/catch.hpp"

using namespace fragshim;
using Json = nlohmann::json;

namespace {

const std::string data = FRAGSHIM_TEST_DATA;

/// A trace held in memory, since every row reads it again.
class StoredEvents final : public EventSource {
 public:
  explicit StoredEvents(const std::vector<Event>& events) : events_(events) {}
  bool next(Event* event) override {
    if (next_ == events_.size()) return false;
    *event = events_[next_++];
    return true;
  }

 private:
  const std::vector<Event>& events_;
  std::size_t next_ = 0;
};

const std::vector<Event>& events_of(const std::string& trace) {
  static std::map<std::string, std::vector<Event>> stored;
  std::vector<Event>& events = stored[trace];
  if (!events.empty()) return events;
  const bool is_case = std::ifstream(data + "/oracle/cases/" + trace + ".csv").good();
  const auto source = open_events(is_case ? data + "/oracle/cases/" + trace + ".csv"
                                          : data + "/traces/" + trace + ".csv.xz");
  Event event;
  while (source->next(&event)) events.push_back(event);
  return events;
}

const std::vector<Json>& rows() {
  static const std::vector<Json> all = [] {
    std::vector<Json> parsed;
    std::ifstream file(data + "/oracle/pytorch-2.11.jsonl");
    for (std::string line; std::getline(file, line);) parsed.push_back(Json::parse(line));
    return parsed;
  }();
  return all;
}

/// The fields of a row that a replay has, by their names there.
Json fields(const ReplayResult& r) {
  return {{"events", r.events},
          {"requested_peak", r.requested_peak},
          {"allocated_peak", r.allocated_peak},
          {"reserved_peak", r.reserved_peak},
          {"reserved_end", r.reserved_end},
          {"allocated_end", r.allocated_end},
          {"device_alloc", r.device_alloc},
          {"device_free", r.device_free},
          {"retries", r.retries},
          {"ooms", r.ooms},
          {"first_oom_event", r.first_oom_event},
          {"inactive_split_end", r.inactive_split_end}};
}

void compare(const Json& row) {
  const ConfString conf = parse_conf(row.at("conf").get<std::string>());
  REQUIRE(conf.problems.empty());
  ReplayOptions options;
  options.config = conf.allocation;
  const auto capacity_mib = row.at("capacity_mib").get<Bytes>();
  if (capacity_mib != 0) options.capacity = capacity_mib * MiB;
  StoredEvents source(events_of(row.at("trace").get<std::string>()));
  const ReplayResult result = replay(source, options);
  Json expected = row;
  for (const char* name : {"trace", "conf", "capacity_mib"}) expected.erase(name);
  CHECK(fields(result) == expected);
  std::uint64_t classified = 0;
  for (const auto& [name, count] : result.failure_classes) classified += count;
  CHECK(classified == result.ooms);  // none of these has more than are classified
}

/// A section for each row that has the default configuration, or has not.
void compare_rows(bool with_default) {
  for (const Json& row : rows()) {
    if (row.at("conf").get<std::string>().empty() != with_default) continue;
    const std::string name = row.at("trace").get<std::string>() + " '" +
                             row.at("conf").get<std::string>() + "' " +
                             std::to_string(row.at("capacity_mib").get<Bytes>()) + " MiB";
    SECTION(name) { compare(row); }
  }
}

}  // namespace

TEST_CASE("the oracle is there") { CHECK(rows().size() == 239); }

TEST_CASE("replay equals PyTorch by default", "[oracle][default]") { compare_rows(true); }

TEST_CASE("replay equals PyTorch under every configuration", "[oracle][configured]") {
  compare_rows(false);
}
