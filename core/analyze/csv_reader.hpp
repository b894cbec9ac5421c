// Reads RMM's allocation log: a header line, then one event a line.
#pragma once

#include <array>

#include "core/analyze/event_source.hpp"
#include "core/analyze/line_reader.hpp"

namespace fragshim {

/// Columns go by the header's names: Action, Pointer and Size must be there; Thread, Time and
/// Stream may be; others are passed over. Empty lines are passed over too. A last line that is cut
/// off is left out.
class CsvReader final : public EventSource {
 public:
  /// Reads the header. Throws InputError where there is none.
  explicit CsvReader(ByteStream input);

  /// Times without a date go on over midnight.
  bool next(Event* event) override;
  std::uint64_t incomplete() const override { return incomplete_; }

 private:
  enum Column : std::size_t { thread, time, action, pointer, size, stream, columns };
  static constexpr std::size_t most_fields = 32;
  static constexpr std::size_t absent = most_fields;
  static constexpr std::array<std::string_view, columns> names = {"Thread",  "Time", "Action",
                                                                  "Pointer", "Size", "Stream"};

  /// What is wrong with a line: the column and what it takes. `wrong` is null where all is well.
  struct Verdict {
    const char* wrong = nullptr;
    Column column = columns;
  };

  void read_header();
  std::size_t split(std::string_view line);
  Verdict parse(Event* event);
  std::string_view field(Column column) const { return fields_[place_[column]]; }
  std::int64_t without_midnight(std::int64_t time_ns);
  [[noreturn]] void fail(std::string_view line, const Verdict& verdict) const;

  LineReader lines_;
  std::array<std::size_t, columns> place_{};                // column → field of a line
  std::array<std::string_view, most_fields + 1> fields_{};  // the present line's; last: empty
  std::size_t needed_ = 0;                                  // fields that are looked at
  std::int64_t last_time_ = 0;
  std::int64_t midnights_ns_ = 0;
  std::uint64_t incomplete_ = 0;
};

}  // namespace fragshim
