// Pickles as data: every opcode that makes data, and none that does more.
#include "core/analyze/pickle_data.hpp"
#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using namespace std::string_literals;
using testing::contains;
using testing::input_error;
using Kind = PickleData::Kind;

namespace {

const std::string data_folder = FRAGSHIM_TEST_DATA;

/// The texts of a pickle point into `content`'s stream, which the result keeps.
PickleData read(const std::string& content, const PickleLimits& limits = {}) {
  return PickleData::read(ByteStream::of(content, "p"), limits);
}

/// `body` as a pickle of protocol 4.
std::string pickle(const std::string& body) { return "\x80\x04"s + body + "."; }

std::string refusal(const std::string& content, const PickleLimits& limits = {}) {
  return input_error([&] { read(content, limits); });
}

std::int64_t integer(const std::string& body) {
  const PickleData data = read(pickle(body));
  return data.integer(data.root()).value();
}

}  // namespace

TEST_CASE("numbers of every width") {
  CHECK(integer("K\xff"s) == 255);
  CHECK(integer("M\xff\xff"s) == 65535);
  CHECK(integer("J\xff\xff\xff\xff"s) == -1);
  CHECK(integer("J\x00\x00\x00\x80"s) == -2147483648);
  CHECK(integer("\x8a\x00"s) == 0);
  CHECK(integer("\x8a\x01\xff"s) == -1);
  CHECK(integer("\x8a\x03\x00\x00\x80"s) == -8388608);
  CHECK(integer("\x8a\x06\x00\x00\x00\x00\x00\x7f"s) == 0x7f0000000000);
  CHECK(integer("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"s) == -1);
  CHECK(integer("\x8b\x01\x00\x00\x00\x05"s) == 5);
  CHECK(contains(refusal(pickle("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"s)), "64 bits"));
  CHECK(contains(refusal(pickle("\x8b\xff\xff\xff\x7f\x05"s)), "64 bits"));
  const PickleData real = read(pickle("G\xbf\xf8\x00\x00\x00\x00\x00\x00"s));
  CHECK(real.number(real.root()) == -1.5);
  CHECK_FALSE(real.integer(real.root()));
  const PickleData truth = read(pickle("\x88"s));
  CHECK(truth.boolean(truth.root()) == true);
  const PickleData none = read(pickle("N"));
  CHECK(none.kind(none.root()) == Kind::none);
}

TEST_CASE("texts of every width") {
  for (const std::string& body :
       {"\x8c\x03xyz"s, "X\x03\x00\x00\x00xyz"s, "\x8d\x03\x00\x00\x00\x00\x00\x00\x00xyz"s,
        "U\x03xyz"s, "T\x03\x00\x00\x00xyz"s}) {
    const std::string content = pickle(body);
    const PickleData data = read(content);
    CHECK(data.text(data.root()) == "xyz");
  }
  for (const std::string& body :
       {"C\x03xyz"s, "B\x03\x00\x00\x00xyz"s, "\x8e\x03\x00\x00\x00\x00\x00\x00\x00xyz"s}) {
    const PickleData data = read(pickle(body));
    CHECK(data.kind(data.root()) == Kind::bytes);
  }
}

TEST_CASE("lists, tuples, dictionaries, and what they share") {
  // d = {"a": [1, 2, 3], "b": <the same list>, "a": ()}
  const std::string content = pickle(
      "}\x94(\x8c\x01"s
      "a]\x94(K\x01K\x02"s
      "eK\x03"s
      "a\x8c\x01"s
      "bh\x01\x8c\x01"s
      "a)u"s);
  const PickleData data = read(content);
  const auto b = data.find(data.root(), "b");
  REQUIRE(b);
  CHECK(data.items(*b).size() == 3);
  CHECK(data.integer(data.items(*b)[2]) == 3);
  const auto a = data.find(data.root(), "a");
  REQUIRE(a);
  CHECK(data.kind(*a) == Kind::tuple);
  CHECK_FALSE(data.find(data.root(), "c"));
  CHECK_FALSE(data.find(*a, "c"));
  const PickleData triple = read(pickle("K\x01K\x02K\x03\x87"s));
  REQUIRE(triple.items(triple.root()).size() == 3);
  CHECK(triple.integer(triple.items(triple.root())[0]) == 1);
}

TEST_CASE("Python's own pickles, in every protocol") {
  for (const char* protocol : {"2", "3", "4", "5"}) {
    INFO(protocol);
    const PickleData data =
        PickleData::read(ByteStream::open(data_folder + "/snapshots/whole" + protocol + ".pickle"));
    const auto traces = data.find(data.root(), "device_traces");
    REQUIRE(traces);
    CHECK(data.items(data.items(*traces)[0]).size() == 10);
  }
}

TEST_CASE("whatever names or calls code is refused") {
  for (const auto& [body, name] : std::vector<std::pair<std::string, std::string>>{
           {"cos\nsystem\n"s, "GLOBAL"},
           {"\x8c\x02os\x8c\x06system\x93"s, "STACK_GLOBAL"},
           {"NNR", "REDUCE"},
           {"NNb", "BUILD"},
           {"(ios\nsystem\n", "INST"},
           {"(No", "OBJ"},
           {"NN\x81"s, "NEWOBJ"},
           {"NNN\x92"s, "NEWOBJ_EX"},
           {"\x82\x01"s, "EXT1"},
           {"\x83\x01\x01"s, "EXT2"},
           {"\x84\x01\x01\x01\x01"s, "EXT4"},
           {"Pid\n", "PERSID"},
           {"NQ", "BINPERSID"},
           {"\x97"s, "NEXT_BUFFER"}}) {
    INFO(name);
    const std::string what = refusal(pickle(body));
    CHECK(contains(what, "p: at byte"));
    CHECK(contains(what, "(opcode " + name + ")"));
    CHECK_FALSE(contains(what, "\n"));
  }
  CHECK(contains(refusal(pickle("\xff"s)), "unknown pickle opcode 0xff"));
  CHECK(contains(refusal("\x80\x06N."s), "protocol 6"));
}

TEST_CASE("what is cut off or has no sense is refused") {
  const std::string content = testing::read_file(data_folder + "/snapshots/whole4.pickle");
  for (std::size_t length = 0; length + 1 < content.size(); length += 7) {
    const std::string part = content.substr(0, length);
    CHECK(contains(refusal(part), "p: at byte"));
  }
  for (const std::string& body : {"a"s, "0"s, "u"s, "(a"s, "]NNu"s, "N(Ne"s, "h\x05"s, "}(Nu"s,
                                  "(t0"s, "s"s, "e"s, "r\xff\xff\xff\xff"s, "2"s}) {
    INFO(body);
    CHECK_FALSE(refusal(pickle(body)).empty());
  }
  CHECK(contains(refusal(pickle("Nr\xff\xff\xff\x7f"s)), "memo out of bounds"));
}

TEST_CASE("bounds on what is read") {
  PickleLimits limits;
  limits.values = 3;
  CHECK(refusal(pickle("]N0N"), limits).empty());
  CHECK(contains(refusal(pickle("]NNN"), limits), "more than 3 values"));
  limits = {};
  limits.depth = 2;
  CHECK(refusal(pickle("((tt"), limits).empty());
  CHECK(contains(refusal(pickle("(((ttt"), limits), "nested too deeply"));
  limits = {};
  limits.bytes = 1000;
  CHECK(contains(refusal(pickle(std::string(std::size_t{2} << 20, 'N')), limits), "larger than"));
}
