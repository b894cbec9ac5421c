#include "core/analyze/byte_stream.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <cstring>
#include <new>

#include "core/analyze/input_error.hpp"

namespace fragshim {

namespace {

constexpr std::size_t read_size = std::size_t{256} * 1024;

}  // namespace

void ByteStream::Close::operator()(archive* reader) const { archive_read_free(reader); }

ByteStream::ByteStream(std::string name)
    : name_(std::move(name)), reader_(archive_read_new()), buffer_(read_size) {
  if (!reader_) throw std::bad_alloc();
  archive_read_support_filter_gzip(reader_.get());
  archive_read_support_filter_xz(reader_.get());
  archive_read_support_filter_zstd(reader_.get());
  archive_read_support_format_raw(reader_.get());
  archive_read_support_format_empty(reader_.get());
}

ByteStream ByteStream::open(const std::string& path) {
  ByteStream stream(path);
  stream.start(archive_read_open_filename(stream.reader_.get(), path.c_str(), read_size));
  return stream;
}

ByteStream ByteStream::of(std::string_view content, std::string name) {
  ByteStream stream(std::move(name));
  stream.start(archive_read_open_memory(stream.reader_.get(), content.data(), content.size()));
  return stream;
}

void ByteStream::start(int opened) {
  if (opened != ARCHIVE_OK) fail(true);
  archive_entry* entry = nullptr;
  const int result = archive_read_next_header(reader_.get(), &entry);
  if (result == ARCHIVE_EOF) {
    finished_ = true;
  } else if (result != ARCHIVE_OK) {
    fail(false);
  }
}

std::string_view ByteStream::peek(std::size_t wanted) {
  while (end_ - begin_ < wanted && !finished_) {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (buffer_.size() < wanted + read_size) buffer_.resize(wanted + read_size);
    const std::size_t count = read(buffer_.data() + end_, buffer_.size() - end_);
    finished_ = count == 0;
    end_ += count;
  }
  return {buffer_.data() + begin_, end_ - begin_};
}

std::size_t ByteStream::read(char* out, std::size_t capacity) {
  const la_ssize_t count = archive_read_data(reader_.get(), out, capacity);
  if (count < 0) fail(false);
  return static_cast<std::size_t>(count);
}

void ByteStream::fail(bool opening) const {
  const int error = archive_errno(reader_.get());
  if (opening && error > 0) throw InputError(name_ + ": " + std::strerror(error));
  const char* reason = archive_error_string(reader_.get());
  throw InputError(name_ + ": " + (reason == nullptr ? "cannot be read" : reason));
}

}  // namespace fragshim
