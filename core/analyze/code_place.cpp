#include "core/analyze/code_place.hpp"

#include <algorithm>

namespace fragshim {

namespace {

bool has_file(const CodeFrame& frame) { return !frame.file.empty() && frame.file != "??"; }

bool is_users(const CodeFrame& frame) {
  const std::string_view file = frame.file;
  return has_file(frame) && (file.ends_with(".py") || file.starts_with("<ipython")) &&
         file.find("/torch/") == std::string_view::npos;
}

}  // namespace

std::string code_place(const std::vector<CodeFrame>& stack) {
  auto frame = std::find_if(stack.begin(), stack.end(), is_users);
  if (frame == stack.end()) frame = std::find_if(stack.begin(), stack.end(), has_file);
  if (frame == stack.end()) return "";
  std::string out(frame->file);
  return out + ":" + std::to_string(frame->line) + " " + std::string(frame->function);
}

}  // namespace fragshim
