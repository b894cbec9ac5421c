// Which variable counts, what each one takes, and where a value is said to come from.
#include "config/settings.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/unit/config_map_environment.hpp"

using namespace fragshim;

namespace {

constexpr std::uint64_t mb = 1 << 20;

EffectiveOption row(const Settings& settings, const std::string& name) {
  for (const EffectiveOption& option : settings.effective) {
    if (option.name == name) return option;
  }
  FAIL("no row for " << name);
  return {};
}

void check_row(const Settings& settings, const std::string& name, const std::string& value,
               const std::string& source) {
  INFO(name);
  const EffectiveOption found = row(settings, name);
  CHECK(found.value == value);
  CHECK(found.source == source);
}

std::string only_problem(const Settings& settings) {
  REQUIRE(settings.problems.size() == 1);
  return settings.problems[0].line();
}

}  // namespace

TEST_CASE("an empty environment gives the defaults", "[config]") {
  const Settings settings = load_settings(MapEnvironment{});
  CHECK(settings.mode == Mode::allocate);
  CHECK(settings.torch == Torch::hand_over);
  CHECK(settings.ipc == Ipc::refuse);
  CHECK_FALSE(settings.strict_free);
  CHECK_FALSE(settings.quiet);
  CHECK_FALSE(settings.verbose);
  CHECK(settings.log == "fragshim-%h-%p.jsonl");
  CHECK(settings.trace.empty());
  CHECK(settings.log_interval_ms == 1000);
  CHECK(settings.conf.empty());
  CHECK(settings.conf_source == "default");
  CHECK(settings.problems.empty());
  for (const EffectiveOption& option : settings.effective) CHECK(option.source == "default");
  check_row(settings, "max_split_size_mb", "unlimited", "default");
  check_row(settings, "FRAGSHIM_TRACE", "off", "default");
}

TEST_CASE("every variable sets its own setting", "[config]") {
  const Settings settings = load_settings(MapEnvironment{{"FRAGSHIM_MODE", "observe"},
                                                         {"FRAGSHIM_TORCH", "native"},
                                                         {"FRAGSHIM_IPC", "dedicated"},
                                                         {"FRAGSHIM_STRICT_FREE", "Yes"},
                                                         {"FRAGSHIM_LOG", "/tmp/%r.jsonl"},
                                                         {"FRAGSHIM_LOG_INTERVAL_MS", "250"},
                                                         {"FRAGSHIM_TRACE", "t.fstrace"},
                                                         {"FRAGSHIM_QUIET", "1"},
                                                         {"FRAGSHIM_VERBOSE", "on"},
                                                         {"FRAGSHIM_CONF", "policy:native"}});
  CHECK(settings.problems.empty());
  CHECK(settings.mode == Mode::observe);
  CHECK(settings.torch == Torch::native);
  CHECK(settings.ipc == Ipc::dedicated);
  CHECK(settings.strict_free);
  CHECK(settings.quiet);
  CHECK(settings.verbose);
  CHECK(settings.log == "/tmp/%r.jsonl");
  CHECK(settings.log_interval_ms == 250);
  CHECK(settings.trace == "t.fstrace");
  CHECK(settings.allocation.policy == PolicyKind::native);
  check_row(settings, "FRAGSHIM_MODE", "observe", "FRAGSHIM_MODE");
  check_row(settings, "FRAGSHIM_STRICT_FREE", "on", "FRAGSHIM_STRICT_FREE");
  check_row(settings, "FRAGSHIM_CONF", "policy:native", "FRAGSHIM_CONF");
  check_row(settings, "policy", "native", "FRAGSHIM_CONF");
  check_row(settings, "max_split_size_mb", "unlimited", "default");
  CHECK(load_settings(MapEnvironment{{"FRAGSHIM_MODE", "off"}}).mode == Mode::off);
}

TEST_CASE("the log and the trace are files, or off", "[config]") {
  for (const char* off : {"", "off", "OFF", "0"}) {
    const Settings settings =
        load_settings(MapEnvironment{{"FRAGSHIM_LOG", off}, {"FRAGSHIM_TRACE", off}});
    CHECK(settings.log.empty());
    CHECK(settings.trace.empty());
    check_row(settings, "FRAGSHIM_LOG", "off", "FRAGSHIM_LOG");
  }
  for (const char* on : {"on", "1"}) {
    const Settings settings =
        load_settings(MapEnvironment{{"FRAGSHIM_LOG", on}, {"FRAGSHIM_TRACE", on}});
    CHECK(settings.log == "fragshim-%h-%p.jsonl");
    CHECK(settings.trace == "fragshim-%h-%p.fstrace");
    check_row(settings, "FRAGSHIM_TRACE", "fragshim-%h-%p.fstrace", "FRAGSHIM_TRACE");
  }
}

TEST_CASE("the first conf variable that is set counts, even if empty", "[config]") {
  MapEnvironment environment{{"PYTORCH_ALLOC_CONF", "max_split_size_mb:21"}};
  check_row(load_settings(environment), "max_split_size_mb", "21", "PYTORCH_ALLOC_CONF");
  environment.set("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:22");
  check_row(load_settings(environment), "max_split_size_mb", "22", "PYTORCH_CUDA_ALLOC_CONF");
  environment.set("FRAGSHIM_CONF", "max_split_size_mb:23");
  CHECK(load_settings(environment).allocation.max_split_size == 23 * mb);
  environment.set("FRAGSHIM_CONF", "");
  const Settings empty = load_settings(environment);
  CHECK(empty.allocation.max_split_size == AllocationConfig::no_limit);
  CHECK(empty.conf_source == "FRAGSHIM_CONF");
  check_row(empty, "max_split_size_mb", "unlimited", "default");
}

TEST_CASE("values in force are shown as read", "[config]") {
  const Settings settings = load_settings(
      MapEnvironment{{"FRAGSHIM_CONF",
                      "max_split_size_mb:64MB,large_segment_size_mb:32,garbage_collection_threshold"
                      ":x,max_split_size_mb:128,pinned_num_register_threads:8"}});
  check_row(settings, "max_split_size_mb", "128", "FRAGSHIM_CONF");
  check_row(settings, "max_non_split_rounding_mb", "32", "default");
  check_row(settings, "garbage_collection_threshold", "0", "default");
  check_row(settings, "pinned_num_register_threads", "8", "FRAGSHIM_CONF");
  CHECK(settings.host_side == std::vector<std::string>{"pinned_num_register_threads"});
}

TEST_CASE("flags are sources of their own", "[config]") {
  const Settings settings =
      load_settings(MapEnvironment{{"FRAGSHIM_FLAGS", "CONF,LOG_INTERVAL_MS,MODE"},
                                   {"FRAGSHIM_CONF", "policy:stich,max_split_size_mb:64"},
                                   {"FRAGSHIM_LOG_INTERVAL_MS", "10"},
                                   {"FRAGSHIM_MODE", "observer"},
                                   {"FRAGSHIM_LOG", "x"}});
  check_row(settings, "FRAGSHIM_CONF", "policy:stich,max_split_size_mb:64", "--conf");
  check_row(settings, "max_split_size_mb", "64", "--conf");
  check_row(settings, "FRAGSHIM_LOG_INTERVAL_MS", "10", "--log-interval-ms");
  check_row(settings, "FRAGSHIM_LOG", "x", "FRAGSHIM_LOG");
  REQUIRE(settings.problems.size() == 2);
  CHECK(settings.problems[0].line() ==
        "fragshim: --conf: policy: bad value 'stich'; allowed: auto | native | stitch; did you "
        "mean 'stitch'?");
  CHECK(settings.problems[1].line() ==
        "fragshim: --mode: bad value 'observer'; allowed: allocate | observe | off; did you mean "
        "'observe'?");
  check_row(settings, "FRAGSHIM_MODE", "allocate", "default");
}

TEST_CASE("an explicit backend:native leaves PyTorch its allocator", "[config]") {
  MapEnvironment environment{{"PYTORCH_CUDA_ALLOC_CONF", "backend:native"}};
  const Settings native = load_settings(environment);
  CHECK(native.torch == Torch::native);
  CHECK(native.backend == Backend::native);
  check_row(native, "FRAGSHIM_TORCH", "native", "PYTORCH_CUDA_ALLOC_CONF");
  environment.set("FRAGSHIM_TORCH", "async");
  const Settings async = load_settings(environment);
  CHECK(async.torch == Torch::hand_over);
  check_row(async, "FRAGSHIM_TORCH", "async", "FRAGSHIM_TORCH");
  environment.set("FRAGSHIM_TORCH", "asinc");
  CHECK(load_settings(environment).torch == Torch::native);
  environment.set("FRAGSHIM_TORCH", std::nullopt);
  environment.set("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync");
  CHECK(load_settings(environment).torch == Torch::hand_over);
}

TEST_CASE("bad values have a line each, and the default in their place", "[config]") {
  const auto problem = [](const char* name, const char* value) {
    return only_problem(load_settings(MapEnvironment{{name, value}}));
  };
  CHECK(problem("FRAGSHIM_MODE", "Off") ==
        "fragshim: FRAGSHIM_MODE: bad value 'Off'; allowed: allocate | observe | off; did you mean "
        "'off'?");
  CHECK(problem("FRAGSHIM_TORCH", "nativ") ==
        "fragshim: FRAGSHIM_TORCH: bad value 'nativ'; allowed: async | native; did you mean "
        "'native'?");
  CHECK(problem("FRAGSHIM_IPC", "?") ==
        "fragshim: FRAGSHIM_IPC: bad value '?'; allowed: refuse | dedicated");
  CHECK(problem("FRAGSHIM_QUIET", "ture") ==
        "fragshim: FRAGSHIM_QUIET: bad value 'ture'; allowed: 1 | 0 | on | off | true | false | "
        "yes | no; did you mean 'true'?");
  for (const char* interval : {"0", "-1", "1s", " 5", "1e3", "86400001", "99999999999999999999"}) {
    CHECK(problem("FRAGSHIM_LOG_INTERVAL_MS", interval) ==
          std::string("fragshim: FRAGSHIM_LOG_INTERVAL_MS: bad value '") + interval +
              "'; allowed: a whole number of milliseconds from 1 to 86400000");
  }
  const Settings bad = load_settings(MapEnvironment{{"FRAGSHIM_LOG_INTERVAL_MS", "x"}});
  CHECK(bad.log_interval_ms == 1000);
  check_row(bad, "FRAGSHIM_LOG_INTERVAL_MS", "1000", "default");
}

TEST_CASE("an empty value is no value, but for the conf string and files", "[config]") {
  const Settings settings = load_settings(MapEnvironment{
      {"FRAGSHIM_MODE", ""}, {"FRAGSHIM_QUIET", ""}, {"FRAGSHIM_LOG_INTERVAL_MS", ""}});
  CHECK(settings.problems.empty());
  check_row(settings, "FRAGSHIM_MODE", "allocate", "default");
}

TEST_CASE("an unknown FRAGSHIM_ variable is told, with its likely spelling", "[config]") {
  CHECK(only_problem(load_settings(MapEnvironment{{"FRAGSHIM_MOED", "off"}})) ==
        "fragshim: unknown variable 'FRAGSHIM_MOED'; did you mean 'FRAGSHIM_MODE'?");
  CHECK(only_problem(load_settings(MapEnvironment{{"FRAGSHIM_LOG_INTERVAL", "5"}})) ==
        "fragshim: unknown variable 'FRAGSHIM_LOG_INTERVAL'; did you mean "
        "'FRAGSHIM_LOG_INTERVAL_MS'?");
  CHECK(only_problem(load_settings(MapEnvironment{{"FRAGSHIM_XYZZY", "5"}})) ==
        "fragshim: unknown variable 'FRAGSHIM_XYZZY'");
  const Settings internal = load_settings(MapEnvironment{{"FRAGSHIM_FLAGS", ""},
                                                         {"FRAGSHIM_TORCH_CONF", ""},
                                                         {"FRAGSHIM_TORCH_CONF_SOURCE", ""},
                                                         {"FRAGSHIM_HANDED_CONF", "x"},
                                                         {"FRAGSHIMX", ""},
                                                         {"PATH", "/bin"}});
  CHECK(internal.problems.empty());
}

TEST_CASE("the process's environment is read as it is", "[config]") {
  REQUIRE(setenv("FRAGSHIM_LOG_INTERVAL_MS", "77", 1) == 0);
  const ProcessEnvironment environment;
  CHECK(environment.get("FRAGSHIM_LOG_INTERVAL_MS") == "77");
  CHECK_FALSE(environment.get("FRAGSHIM_NEVER_SET"));
  const auto names = environment.names();
  CHECK(std::count(names.begin(), names.end(), "FRAGSHIM_LOG_INTERVAL_MS") == 1);
  CHECK(load_settings().log_interval_ms == 77);
  REQUIRE(unsetenv("FRAGSHIM_LOG_INTERVAL_MS") == 0);
}
