// Columns of text that line up.
#pragma once

#include <string>
#include <vector>

namespace fragshim {

class TextTable {
 public:
  using Row = std::vector<std::string>;

  explicit TextTable(Row header) : rows_{std::move(header)} {}
  void add(Row row) { rows_.push_back(std::move(row)); }
  /// The first column to the left, the others to the right, two spaces between.
  std::string text() const;

 private:
  std::vector<Row> rows_;
};

}  // namespace fragshim
