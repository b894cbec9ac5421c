#include "core/analyze/text_table.hpp"

#include <algorithm>

namespace fragshim {

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  for (const Row& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      if (i == 0) {
        out += row[i] + (row.size() > 1 ? padding : "");
      } else {
        out += "  " + padding + row[i];
      }
    }
    out += '\n';
  }
  return out;
}

}  // namespace fragshim
