#include "core/analyze/convert.hpp"

#include "core/analyze/perfetto_writer.hpp"
#include "core/analyze/snapshot_writer.hpp"

namespace fragshim {

std::optional<TraceFormat> format_of(std::string_view path) {
  if (path.ends_with(".csv")) return TraceFormat::csv;
  if (path.ends_with(".fstrace")) return TraceFormat::binary;
  if (path.ends_with(".pickle")) return TraceFormat::snapshot;
  if (path.ends_with(".json")) return TraceFormat::perfetto;
  return std::nullopt;
}

std::uint64_t convert(EventSource& source, TraceFormat format, std::ostream& out) {
  switch (format) {
    case TraceFormat::csv:
      return write_csv(source, out);
    case TraceFormat::binary:
      return write_binary(source, out);
    case TraceFormat::snapshot:
      return write_snapshot(source, out);
    case TraceFormat::perfetto:
      return write_perfetto(source, out);
  }
  return 0;
}

}  // namespace fragshim
