#include "config/conf_string.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>

#include "config/option_table.hpp"
#include "config/parse_size.hpp"
#include "config/roundup_list.hpp"
#include "config/spelling.hpp"
#include "config/torch_value.hpp"

namespace fragshim {
namespace {

constexpr std::uint64_t mb = 1 << 20;
constexpr std::uint64_t most_mb = ~std::uint64_t{0} / mb;  // PyTorch clamps to this
constexpr std::uint64_t least_large_segment_mb = 11;

std::string number_text(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

/// One pass over the tokens. Positions advance exactly as in PyTorch's own parser where it takes a
/// value, so that what it tolerates is tolerated here: any token at all may stand where a ':' or a
/// ',' belongs. Where PyTorch would throw, a Problem is recorded, and the next key is looked for.
class ConfParser {
 public:
  ConfParser(std::string_view text, std::string_view where)
      : tokens_(torch_value::tokens(text)), where_(where) {}

  ConfString parse() {
    find_large_segment_size();
    for (std::size_t at = 0; at < tokens_.size();) at = entry(at);
    return std::move(result_);
  }

 private:
  // What a key's reader gives: the value in force as text, or nothing where the value is bad.
  using Effective = std::optional<std::string>;
  struct Reader {
    std::string_view key;
    Effective (ConfParser::*read)();
  };
  static const std::array<Reader, 10> readers;

  /// Other limits depend on this one, wherever it stands; so PyTorch reads it first.
  void find_large_segment_size() {
    for (std::size_t at = 0; at < tokens_.size(); ++at) {
      if (tokens_[at] != "large_segment_size_mb") continue;
      last_ = at + 2;
      large_segment_size();
    }
    large_mb_ = result_.allocation.large_segment_size / mb;
    result_.allocation.max_non_split_rounding = large_mb_ * mb;
  }

  /// Reads the key at `key` and its value; returns where the next key is expected.
  std::size_t entry(std::size_t key) {
    if (torch_value::is_separator(tokens_[key])) return stray_separators(key);
    const Option* const option = find_conf_key(tokens_[key]);
    if (!option) return unknown_key(key);
    const std::size_t value = key + 2;
    last_ = value;
    const Effective effective = read(*option);
    if (!effective) return bad_value(key, *option);
    result_.settings.push_back({tokens_[key], joined(value, last_ + 1), *effective});
    if (option->place == OptionPlace::host_conf) note_host_side(tokens_[key]);
    return last_ + 2;
  }

  Effective read(const Option& option) {
    if (option.place == OptionPlace::host_conf) return host_side(option);
    for (const Reader& reader : readers) {
      if (reader.key == option.name) return (this->*reader.read)();
    }
    return std::nullopt;
  }

  // Readers. The value's first token is at `last_`; one that takes more tokens moves `last_` to the
  // last of them. Each puts the default in place before it looks at the value.

  Effective size_mb(std::uint64_t& target, std::uint64_t fallback, std::uint64_t least_mb) {
    target = fallback;
    const auto value = torch_value::whole_number(token());
    if (!value || *value < least_mb) return std::nullopt;
    const std::uint64_t clamped = std::min(*value, most_mb);
    target = clamped * mb;
    return std::to_string(clamped);
  }

  Effective large_segment_size() {
    return size_mb(result_.allocation.large_segment_size, AllocationConfig::default_large_segment,
                   least_large_segment_mb);
  }
  Effective max_split_size() {
    return size_mb(result_.allocation.max_split_size, AllocationConfig::no_limit, large_mb_);
  }
  Effective max_non_split_rounding() {
    return size_mb(result_.allocation.max_non_split_rounding, large_mb_ * mb, large_mb_);
  }

  // Our own key: strict, since no program depends on "100GB" meaning 100 MB.
  Effective memory_limit() {
    const bool strict = parse_integer(token()).has_value();
    Effective taken = size_mb(result_.allocation.memory_limit, AllocationConfig::no_limit, 1);
    if (strict && taken) return taken;
    result_.allocation.memory_limit = AllocationConfig::no_limit;
    return std::nullopt;
  }

  Effective garbage_collection_threshold() {
    double& target = result_.allocation.garbage_collection_threshold;
    target = 0;
    const auto value = torch_value::number(token());
    if (!value || !(*value > 0 && *value < 1)) return std::nullopt;
    target = *value;
    return number_text(*value);
  }

  Effective per_process_memory_fraction() {
    double& target = result_.allocation.per_process_memory_fraction;
    target = 1;
    const auto value = torch_value::number(token());
    if (!value || !(*value >= 0 && *value <= 1)) return std::nullopt;
    target = *value;
    return number_text(*value);
  }

  Effective expandable_segments() {
    const auto value = torch_value::truth(token());
    result_.allocation.expandable_segments = value.value_or(false);
    return value ? Effective(token()) : std::nullopt;
  }

  Effective roundup_power2_divisions() {
    const std::size_t first = last_;
    if (!read_roundup(tokens_, &last_, &result_.allocation.roundup_power2_divisions)) {
      return std::nullopt;
    }
    return joined(first, last_ + 1);
  }

  Effective policy() {
    const auto index = choice_index(find_option("policy")->allowed, token());
    result_.allocation.policy = static_cast<PolicyKind>(index.value_or(0));
    return index ? Effective(token()) : std::nullopt;
  }

  Effective backend() {
    const auto index = choice_index(find_option("backend")->allowed, token());
    result_.backend = index ? static_cast<Backend>(*index + 1) : Backend::unset;
    return index ? Effective(token()) : std::nullopt;
  }

  /// Keys that are only accepted: the kind of value is looked at, its range is PyTorch's business.
  Effective host_side(const Option& option) {
    if (option.kind == OptionKind::boolean) {
      return torch_value::truth(token()) ? Effective(token()) : std::nullopt;
    }
    if (option.kind != OptionKind::text) {
      const auto value = torch_value::whole_number(token());
      return value ? Effective(std::to_string(*value)) : std::nullopt;
    }
    const std::size_t first = last_;
    if (token() == "[") {
      while (last_ < tokens_.size() && tokens_[last_] != "]") ++last_;
      if (last_ == tokens_.size()) return std::nullopt;
    } else if (token().empty() || torch_value::is_separator(token())) {
      return std::nullopt;
    }
    return joined(first, last_ + 1);
  }

  // What goes wrong.

  std::size_t bad_value(std::size_t key, const Option& option) {
    const std::size_t end = end_of_entry(key);
    std::size_t first = key + 1;
    if (first < end && tokens_[first] == ":") ++first;
    const std::string value = joined(first, end);
    result_.problems.push_back({where_, tokens_[key], value, std::string(option.allowed),
                                std::string(nearest_choice(option, value))});
    // The default is in force, whatever an earlier entry of the key said.
    std::erase_if(result_.settings,
                  [&](const ConfSetting& setting) { return setting.key == option.name; });
    return end + 1;
  }

  std::size_t unknown_key(std::size_t key) {
    std::vector<std::string_view> names;
    for (const Option& option : option_table()) {
      if (find_conf_key(option.name)) names.push_back(option.name);
    }
    const std::string_view given = tokens_[key];
    const std::size_t equals = given.find('=');  // "key=value", as other tools have it
    std::string suggestion(nearest_spelling(given.substr(0, equals), names));
    if (equals != std::string_view::npos && !suggestion.empty()) {
      suggestion += ":" + std::string(given.substr(equals + 1));
    }
    result_.problems.push_back({where_, tokens_[key], {}, {}, suggestion, /*unknown=*/true});
    return end_of_entry(key) + 1;
  }

  std::size_t stray_separators(std::size_t at) {
    std::string stray;
    for (; at < tokens_.size() && torch_value::is_separator(tokens_[at]); ++at) {
      stray += tokens_[at];
    }
    result_.problems.push_back({where_, {}, stray, "key:value pairs separated by commas", {}});
    return at;
  }

  /// Where the entry of a key with a bad value ends: at a comma outside brackets, or at a separator
  /// with a known key behind it, so that a missing bracket or comma loses no other key.
  std::size_t end_of_entry(std::size_t key) const {
    int depth = 0;
    for (std::size_t at = key + 1; at < tokens_.size(); ++at) {
      const std::string& here = tokens_[at];
      if (here == "[") ++depth;
      if (here == "]") --depth;
      if (here == "," && depth <= 0) return at;
      const bool key_follows = at + 1 < tokens_.size() && find_conf_key(tokens_[at + 1]);
      if ((here == "," || here == ":") && key_follows) return at;
    }
    return tokens_.size();
  }

  void note_host_side(const std::string& key) {
    auto& seen = result_.host_side;
    if (std::find(seen.begin(), seen.end(), key) == seen.end()) seen.push_back(key);
  }

  /// The token at `last_`, empty behind the end.
  const std::string& token() const { return last_ < tokens_.size() ? tokens_[last_] : nothing_; }

  std::string joined(std::size_t first, std::size_t end) const {
    std::string text;
    for (std::size_t at = first; at < std::min(end, tokens_.size()); ++at) text += tokens_[at];
    return text;
  }

  const std::vector<std::string> tokens_;
  const std::string where_;
  const std::string nothing_;
  std::uint64_t large_mb_ = 0;
  std::size_t last_ = 0;
  ConfString result_;
};

constexpr std::array<ConfParser::Reader, 10> ConfParser::readers = {{
    {"max_split_size_mb", &ConfParser::max_split_size},
    {"max_non_split_rounding_mb", &ConfParser::max_non_split_rounding},
    {"roundup_power2_divisions", &ConfParser::roundup_power2_divisions},
    {"garbage_collection_threshold", &ConfParser::garbage_collection_threshold},
    {"expandable_segments", &ConfParser::expandable_segments},
    {"large_segment_size_mb", &ConfParser::large_segment_size},
    {"per_process_memory_fraction", &ConfParser::per_process_memory_fraction},
    {"backend", &ConfParser::backend},
    {"policy", &ConfParser::policy},
    {"memory_limit_mb", &ConfParser::memory_limit},
}};

}  // namespace

ConfString parse_conf(std::string_view text, std::string_view where) {
  return ConfParser(text, where).parse();
}

}  // namespace fragshim
