#include "core/analyze/line_reader.hpp"

#include "core/analyze/input_error.hpp"

namespace fragshim {

bool LineReader::next(std::string_view* line) {
  std::size_t end = rest_.find('\n');
  if (end == std::string_view::npos) {
    input_.skip(taken_);
    taken_ = 0;
    rest_ = input_.peek(longest);
    end = rest_.find('\n');
    if (end == std::string_view::npos && rest_.size() >= longest) {
      throw InputError(name(), number_ + 1, "a line of more than 1 MiB: this is no text file");
    }
  }
  if (rest_.empty()) return false;
  ++number_;
  terminated_ = end != std::string_view::npos;
  *line = rest_.substr(0, end);
  const std::size_t used = terminated_ ? end + 1 : rest_.size();
  rest_.remove_prefix(used);
  taken_ += used;
  if (line->ends_with('\r')) line->remove_suffix(1);
  return true;
}

}  // namespace fragshim
