// The bytes of a file, unpacked on the way if they are packed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct archive;

namespace fragshim {

/// Reads a file from front to back in bounded memory. Plain or .gz, .xz, .zst: found out by the
/// content, whatever the name. Throws InputError.
class ByteStream {
 public:
  static ByteStream open(const std::string& path);
  /// The same from memory, which must outlive the stream; `name` is for messages.
  static ByteStream of(std::string_view content, std::string name);

  /// The next bytes without taking them, at least `wanted` unless the input ends before. Valid
  /// until the next call; buffers no more than `wanted` and one read.
  std::string_view peek(std::size_t wanted);
  /// Takes bytes that were peeked.
  void skip(std::size_t count) { begin_ += count; }

  const std::string& name() const { return name_; }

 private:
  struct Close {
    void operator()(archive* reader) const;
  };
  using Reader = std::unique_ptr<archive, Close>;

  explicit ByteStream(std::string name);
  void start(int opened);
  std::size_t read(char* out, std::size_t capacity);
  [[noreturn]] void fail(bool opening) const;

  std::string name_;
  Reader reader_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // bytes taken
  std::size_t end_ = 0;    // bytes read
  bool finished_ = false;
};

}  // namespace fragshim
