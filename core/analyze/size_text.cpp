#include "core/analyze/size_text.hpp"

#include <cstdio>

namespace fragshim {

namespace {

std::string decimals(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::string size_text(Bytes size) {
  if (size == unlimited) return "unlimited";
  if (size < KiB) return std::to_string(size) + " B";
  const auto value = static_cast<double>(size);
  if (size < MiB) return decimals("%.2f KiB", value / static_cast<double>(KiB));
  if (size < GiB) return decimals("%.2f MiB", value / static_cast<double>(MiB));
  return decimals("%.2f GiB", value / static_cast<double>(GiB));
}

std::string percent_text(double share) { return decimals("%.1f%%", 100 * share); }

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
