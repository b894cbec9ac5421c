// The small readers and writers: sizes, words, file patterns, JSON.
#include <unistd.h>

#include <cmath>
#include <limits>

#include "config/file_pattern.hpp"
#include "config/json.hpp"
#include "config/parse_size.hpp"
#include "tests/catch.hpp"
#include "tests/unit/config_map_environment.hpp"

using namespace fragshim;

namespace {

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

template <typename Value>
std::string json_value(const Value& content) {
  std::string out;
  JsonWriter(out).value(content);
  return out;
}

}  // namespace

TEST_CASE("a SIZE is bytes, or has one of three suffixes", "[config]") {
  CHECK(parse_size("0") == 0u);
  CHECK(parse_size("1000") == 1000u);
  CHECK(parse_size("1KiB") == 1024u);
  CHECK(parse_size("512MiB") == 512u << 20);
  CHECK(parse_size("8GiB") == 8ull << 30);
  CHECK(parse_size("18446744073709551615") == ~0ull);
  CHECK(parse_size("17179869183GiB") == 17179869183ull << 30);
  for (const char* bad :
       {"", "GiB", "8GB", "8G", "8gib", "8 GiB", " 8", "8 ", "-1", "+1", "1.5GiB", "0x10",
        "17179869184GiB", "18446744073709551616", "8TiB", "8GiBGiB", "8MiB1"}) {
    INFO(bad);
    CHECK_FALSE(parse_size(bad));
  }
}

TEST_CASE("booleans by their words", "[config]") {
  for (const char* yes : {"1", "on", "true", "yes", "ON", "True", "yEs"}) {
    CHECK(parse_boolean(yes) == true);
  }
  for (const char* no : {"0", "off", "false", "no", "OFF", "False", "nO"}) {
    CHECK(parse_boolean(no) == false);
  }
  for (const char* bad : {"", "2", "o", "onn", "y", "enable", " 1"})
    CHECK_FALSE(parse_boolean(bad));
}

TEST_CASE("file patterns", "[config]") {
  const MapEnvironment environment{{"RANK", "3"}, {"JOB", "a/../b"}, {"EMPTY", ""}};
  const auto expand = [&](const char* pattern) {
    return expand_file_pattern(pattern, environment);
  };
  CHECK(expand("plain.jsonl") == "plain.jsonl");
  CHECK(expand("") == "");
  CHECK(expand("%p") == std::to_string(getpid()));
  CHECK(expand("a/%r/b") == "a/3/b");
  CHECK(expand("%h-%p") == expand("%h") + "-" + expand("%p"));
  CHECK(expand("%h") == host_name());
  CHECK(host_name().size() > 0);
  CHECK(expand("x-%q{JOB}.log") == "x-a_.._b.log");
  CHECK(expand("[%q{EMPTY}%q{NEVER_SET}]") == "[]");
  CHECK(expand("100%%") == "100%");
  CHECK(expand("%%p") == "%p");
  for (const char* kept : {"%", "a%", "%x", "%q", "%q{", "%q{JOB", "%qJOB}", "%P"}) {
    CHECK(expand(kept) == kept);
  }
}

TEST_CASE("what a variable puts in is not expanded again", "[config]") {
  const MapEnvironment environment{{"A", "%p"}};
  CHECK(expand_file_pattern("%q{A}", environment) == "%p");
}

TEST_CASE("the rank is what the launcher says", "[config]") {
  CHECK(process_rank(MapEnvironment{}) == "0");
  MapEnvironment environment{{"SLURM_PROCID", "4"}};
  CHECK(process_rank(environment) == "4");
  environment.set("PMI_RANK", "3");
  CHECK(process_rank(environment) == "3");
  environment.set("OMPI_COMM_WORLD_RANK", "2");
  CHECK(process_rank(environment) == "2");
  environment.set("RANK", "1");
  CHECK(process_rank(environment) == "1");
  environment.set("RANK", "../x");  // no number, so no rank
  CHECK(process_rank(environment) == "2");
}

TEST_CASE("JSON strings", "[config]") {
  CHECK(json_string("") == R"("")");
  CHECK(json_string("a\"b\\c/d") == R"("a\"b\\c/d")");
  CHECK(json_string("\n\r\t") == R"("\n\r\t")");
  CHECK(json_string(std::string_view("\0\x1f\x7f", 3)) == "\"\\u0000\\u001f\x7f\"");
  CHECK(json_string("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80") ==
        "\"gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80\"");
}

TEST_CASE("bytes that are no UTF-8 are replaced one by one", "[config]") {
  const std::string bad = "\xEF\xBF\xBD";
  CHECK(json_string("a\xFFz") == "\"a" + bad + "z\"");
  CHECK(json_string("\xC3") == "\"" + bad + "\"");            // cut short
  CHECK(json_string("\xC0\xAF") == "\"" + bad + bad + "\"");  // overlong
  CHECK(json_string("\xE0\x80\x80") == "\"" + bad + bad + bad + "\"");
  CHECK(json_string("\xED\xA0\x80") == "\"" + bad + bad + bad + "\"");  // a surrogate
  CHECK(json_string("\xF4\x90\x80\x80") == "\"" + bad + bad + bad + bad + "\"");
  CHECK(json_string("\xE2\x82") == "\"" + bad + bad + "\"");
  CHECK(json_string("\xE2\x82x") == "\"" + bad + bad + "x\"");
}

TEST_CASE("JSON numbers", "[config]") {
  CHECK(json_value(0) == "0");
  CHECK(json_value(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(json_value(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(json_value(7u) == "7");
  CHECK(json_value(7ull) == "7");
  CHECK(json_value(0.25) == "0.25");
  CHECK(json_value(2.0 / 3) == "0.666667");
  CHECK(json_value(-1e-9) == "0");
  CHECK(json_value(1e300) == "1e+300");
  CHECK(json_value(std::nan("")) == "null");
  CHECK(json_value(std::numeric_limits<double>::infinity()) == "null");
  CHECK(json_value(true) == "true");
  CHECK(json_value(false) == "false");
}

TEST_CASE("JSON objects and arrays", "[config]") {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("a", 1).field("b", "x").field("c", std::string("y"));
  json.key("d").begin_array().value(1).value(true).begin_object().end_object().null().end_array();
  json.key("e").begin_object().key("f").raw("[1]").end_object();
  json.key("g").begin_array().end_array().field("h", 0.5).end_object();
  CHECK(out == R"({"a":1,"b":"x","c":"y","d":[1,true,{},null],"e":{"f":[1]},"g":[],"h":0.5})");
}
