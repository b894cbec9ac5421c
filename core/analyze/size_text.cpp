#include "core/analyze/size_text.hpp"

#include <cstdio>

namespace fragshim {

namespace {

std::string decimals(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string in_units(Bytes size, Bytes unit, const char* name) {
  return decimals(static_cast<double>(size) / static_cast<double>(unit), 2) + name;
}

}  // namespace

std::string size_text(Bytes size) {
  if (size == unlimited) return "unlimited";
  if (size < KiB) return std::to_string(size) + " B";
  if (size < MiB) return in_units(size, KiB, " KiB");
  if (size < GiB) return in_units(size, MiB, " MiB");
  return in_units(size, GiB, " GiB");
}

std::string percent_text(double share) { return decimals(100 * share, 1) + "%"; }

const char* policy_text(PolicyKind policy) {
  switch (policy) {
    case PolicyKind::native:
      return "native";
    case PolicyKind::stitch:
      return "stitch";
    case PolicyKind::automatic:
      break;
  }
  return "automatic";
}

}  // namespace fragshim
