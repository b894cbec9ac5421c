#include "core/analyze/pickle_writer.hpp"

#include <bit>

namespace fragshim {

PickleWriter::PickleWriter(std::ostream& out) : out_(out) {
  out_.write("\x80\x04", 2);  // PROTO 4
}

void PickleWriter::bytes(std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out_.put(static_cast<char>(value >> (8 * i)));
}

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0 && value < 0x100) {
    opcode('K');
    bytes(static_cast<std::uint64_t>(value), 1);
  } else if (value >= 0 && value < 0x10000) {
    opcode('M');
    bytes(static_cast<std::uint64_t>(value), 2);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    opcode('J');
    bytes(static_cast<std::uint64_t>(value), 4);
  } else {
    opcode('\x8a');  // LONG1: as many bytes as its size says
    bytes(8, 1);
    bytes(static_cast<std::uint64_t>(value), 8);
  }
}

void PickleWriter::real(double value) {
  opcode('G');
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) out_.put(static_cast<char>(bits >> shift));
}

void PickleWriter::text(std::string_view value) {
  const auto [known, added] = texts_.try_emplace(std::string(value), kept_);
  if (!added) return again(known->second);
  opcode('X');
  bytes(value.size(), 4);
  out_.write(value.data(), static_cast<std::streamsize>(value.size()));
  keep();
}

void PickleWriter::begin_list() {
  opcode(']');
  opcode('(');
}

void PickleWriter::flush_list() {
  opcode('e');
  opcode('(');
}

void PickleWriter::end_list() { opcode('e'); }

void PickleWriter::begin_dict() {
  opcode('}');
  opcode('(');
}

void PickleWriter::end_dict() { opcode('u'); }

std::uint32_t PickleWriter::keep() {
  opcode('\x94');
  return kept_++;
}

void PickleWriter::again(std::uint32_t kept) {
  opcode(kept < 0x100 ? 'h' : 'j');
  bytes(kept, kept < 0x100 ? 1 : 4);
}

}  // namespace fragshim
