#include "core/analyze/pickle_data.hpp"

#include "core/analyze/input_error.hpp"
#include "core/analyze/pickle_parser.hpp"
#include "core/types.hpp"

namespace fragshim {

PickleData PickleData::read(ByteStream input, const PickleLimits& limits) {
  PickleData data(std::move(input));
  std::size_t wanted = MiB;
  std::string_view content = data.input_.peek(wanted);
  while (content.size() >= wanted) {
    if (content.size() > limits.bytes) {
      throw InputError(data.name() + ": larger than " + std::to_string(limits.bytes) + " bytes");
    }
    wanted *= 2;
    content = data.input_.peek(wanted);
  }
  data.bytes_ = content.size();
  PickleParser(data, content, limits).run();
  return data;
}

std::optional<std::int64_t> PickleData::integer(Id id) const {
  if (kind(id) != Kind::integer) return std::nullopt;
  return values_[id].integer;
}

std::optional<std::string_view> PickleData::text(Id id) const {
  if (kind(id) != Kind::text) return std::nullopt;
  return std::string_view(values_[id].text.data, values_[id].text.size);
}

std::optional<bool> PickleData::boolean(Id id) const {
  if (kind(id) != Kind::boolean) return std::nullopt;
  return values_[id].integer != 0;
}

std::optional<double> PickleData::number(Id id) const {
  if (kind(id) == Kind::real) return values_[id].real;
  if (kind(id) == Kind::integer) return static_cast<double>(values_[id].integer);
  return std::nullopt;
}

std::span<const PickleData::Id> PickleData::items(Id id) const {
  if (!is_sequence(id) && kind(id) != Kind::dict) return {};
  return items_[values_[id].items];
}

std::optional<PickleData::Id> PickleData::find(Id dict, std::string_view key) const {
  if (kind(dict) != Kind::dict) return std::nullopt;
  const auto pairs = items(dict);
  for (std::size_t i = pairs.size(); i >= 2; i -= 2) {  // of equal keys the last is in force
    if (text(pairs[i - 2]) == key) return pairs[i - 1];
  }
  return std::nullopt;
}

}  // namespace fragshim
