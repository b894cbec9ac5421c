// Files plain and packed, and their lines.
#include <array>
#include <random>
#include <string>

#include "core/analyze/byte_stream.hpp"
#include "core/analyze/event_source.hpp"
#include "core/analyze/line_reader.hpp"
#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using testing::contains;
using testing::Folder;
using testing::input_error;

namespace {

std::string read_all(ByteStream stream, std::size_t step) {
  std::string out;
  for (;;) {
    const std::string_view bytes = stream.peek(step);
    if (bytes.empty()) return out;
    const std::size_t count = std::min(bytes.size(), step);
    out += bytes.substr(0, count);
    stream.skip(count);
  }
}

std::string random_bytes(std::size_t count) {
  std::mt19937_64 random(5);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string lines_of(const std::string& content) {
  LineReader reader(ByteStream::of(content, "t"));
  std::string out;
  std::string_view line;
  while (reader.next(&line)) {
    out += std::to_string(reader.number()) + "[" + std::string(line) + "]";
    if (!reader.terminated()) out += "!";
  }
  return out;
}

bool pack(const std::string& tool, const std::string& from, const std::string& to) {
  return std::system((tool + " -c < " + from + " > " + to + " 2>/dev/null").c_str()) == 0;
}

}  // namespace

TEST_CASE("a plain file comes as it is, in steps of any size") {
  Folder folder;
  const std::string content = random_bytes(1'000'003);
  const std::string path = folder.write("f", content);
  for (const std::size_t step : {1000, 4096, 300'000, 5'000'000}) {
    CHECK(read_all(ByteStream::open(path), step) == content);
  }
  CHECK(read_all(ByteStream::of("", "empty"), 10).empty());
  CHECK(read_all(ByteStream::open(folder.write("empty", "")), 10).empty());
}

TEST_CASE("a packed trace is the same trace, whatever it is called") {
  Folder folder;
  std::string content = "Thread,Time,Action,Pointer,Size,Stream\n";
  for (int i = 1; i < 5000; ++i) {
    content += "1,00:00:00,allocate,0x" + std::to_string(i) + ",512,0\n";
  }
  const std::string plain = folder.write("t.csv", content);
  for (const char* tool : {"gzip", "xz", "zstd"}) {
    CAPTURE(tool);
    const std::string packed = folder.file("packed.csv");
    if (!pack(tool, plain, packed)) {
      WARN(tool << " is not installed");
      continue;
    }
    CHECK(std::filesystem::file_size(packed) < content.size());
    CHECK(read_all(ByteStream::open(packed), 1 << 16) == content);
    const auto source = open_events(packed);
    Event event;
    int count = 0;
    while (source->next(&event)) ++count;
    CHECK(count == 4999);

    const std::string whole = testing::read_file(packed);
    const std::string cut =
        folder.write("cut", std::string_view(whole).substr(0, whole.size() / 2));
    CHECK(contains(input_error([&] { read_all(ByteStream::open(cut), 1 << 16); }), cut + ": "));
  }
}

TEST_CASE("files that cannot be opened are told with the reason") {
  Folder folder;
  const std::string absent = folder.file("absent");
  CHECK(input_error([&] { ByteStream::open(absent); }) == absent + ": No such file or directory");
  const std::string here = folder.file(".");
  CHECK(contains(input_error([&] { ByteStream::open(here); }), here + ": "));
}

TEST_CASE("lines with every kind of end") {
  CHECK(lines_of("") == "");
  CHECK(lines_of("a\nb\n") == "1[a]2[b]");
  CHECK(lines_of("a\r\n\nb") == "1[a]2[]3[b]!");
  CHECK(lines_of("\n\n") == "1[]2[]");
  const std::string longest(LineReader::longest - 1, 'x');
  CHECK(lines_of(longest + "\n" + longest + "\ny") == "1[" + longest + "]2[" + longest + "]3[y]!");
  CHECK(contains(input_error([&] { lines_of(longest + longest); }), "t:1: "));
}
