// Writes plain data as a pickle of protocol 4, as it comes.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>

namespace fragshim {

/// Values follow each other as in JSON: a list's items between begin_list and end_list, a
/// dictionary's keys and values between begin_dict and end_dict. Of opcodes only those that the
/// viewer of PyTorch's snapshots reads in a browser, too. Texts are written once and referred to.
class PickleWriter {
 public:
  /// `out` outlives the writer; its state tells of failures.
  explicit PickleWriter(std::ostream& out);

  void none() { opcode('N'); }
  void boolean(bool value) { opcode(value ? '\x88' : '\x89'); }
  void integer(std::int64_t value);
  void real(double value);
  void text(std::string_view value);

  void begin_list();
  /// Between the items of a long list, now and then: the reader then need not hold them all.
  void flush_list();
  void end_list();
  void begin_dict();
  void end_dict();
  /// A tuple of the last two values.
  void pair() { opcode('\x86'); }

  /// Keeps the value just written, to be written again by `again`.
  std::uint32_t keep();
  void again(std::uint32_t kept);

  /// The end of the pickle, after its one value.
  void finish() { opcode('.'); }

 private:
  void opcode(char code) { out_.put(code); }
  void bytes(std::uint64_t value, std::size_t count);

  std::ostream& out_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::uint32_t kept_ = 0;
};

}  // namespace fragshim
