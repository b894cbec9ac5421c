#include "core/record/trace_writer.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace fragshim {

namespace {

constexpr Bytes record_start = sizeof(TraceHeader);
constexpr Bytes mapping_wanted = 64 * GiB;  // addresses only: two thousand million records
constexpr Bytes mapping_least = 2 * MiB;

constexpr Bytes offset_of(std::uint64_t index) {
  return record_start + index * sizeof(TraceRecord);
}

std::int64_t realtime_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Makes sure of the file's bytes in [from, end); returns errno's value. Asks for the size limit
/// first: going over it would raise SIGXFSZ in the program.
int ensure_space(int file, Bytes from, Bytes end) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && end > limit.rlim_cur) return EFBIG;
  int error;
  do {
    error = posix_fallocate(file, static_cast<off_t>(from), static_cast<off_t>(end - from));
  } while (error == EINTR);
  return error;
}

}  // namespace

TraceWriter::~TraceWriter() {
  close();
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
  if (file_ >= 0 && identity_.holds(file_)) ::close(file_);
}

Status TraceWriter::open(const char* path, TraceHeader header, StopCallback on_stop) noexcept {
  if (file_ >= 0) return {Outcome::failed, EBUSY};
  file_ = create_own_file(path, O_RDWR, path_);
  if (file_ < 0) return {Outcome::failed, errno};
  identity_ = FileIdentity(file_);
  int error = ensure_space(file_, 0, offset_of(window));
  if (error == 0) error = map();
  if (error != 0) {
    unlink(path_);
    ::close(file_);
    file_ = -1;
    return {Outcome::failed, error};
  }
  header.pid = static_cast<std::uint32_t>(getpid());
  header.realtime_ns = realtime_ns();
  std::memcpy(mapping_, &header, sizeof header);
  start_ns_ = header.start_ns;
  on_stop_ = on_stop;
  limit_ = (mapped_ - record_start) / sizeof(TraceRecord);
  ready_.store(window, std::memory_order_relaxed);
  next_.store(0, std::memory_order_release);
  return {};
}

/// Maps as many addresses as the process may have, beyond the file's end: no memory is taken, and
/// no thread ever finds the place of its record unmapped. Returns errno's value.
int TraceWriter::map() noexcept {
  for (mapped_ = mapping_wanted; mapped_ >= mapping_least; mapped_ /= 2) {
    void* mapping = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (mapping != MAP_FAILED) {
      mapping_ = static_cast<char*>(mapping);
      return 0;
    }
  }
  return errno;
}

void TraceWriter::append(const Event& event) noexcept {
  const std::uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
  if (index >= ready_.load(std::memory_order_acquire) && !prepare(index + 1)) return;
  const std::uint32_t door = door_bit(event);
  if ((doors_.load(std::memory_order_relaxed) & door) != door) note_door(door);
  const TraceRecord record = pack_record(event, start_ns_);
  auto* place = reinterpret_cast<std::uint64_t*>(mapping_ + offset_of(index));
  place[1] = record.words[1];
  place[2] = record.words[2];
  place[3] = record.words[3];
  __atomic_store_n(place, record.words[0], __ATOMIC_RELEASE);
  // Half-way through a window the next one is made ready, so that nobody has to wait for it.
  if (index % window == window / 2) prepare(round_down(index, window) + 2 * window);
}

/// Before the first record of a door, so that the header never says less than the records.
void TraceWriter::note_door(std::uint32_t bit) noexcept {
  auto* const header = reinterpret_cast<TraceHeader*>(mapping_);
  __atomic_fetch_or(&header->doors, bit, __ATOMIC_RELEASE);
  doors_.fetch_or(bit, std::memory_order_relaxed);
}

/// Makes room in the file for all records below `end`. Any number of threads may do it at once:
/// allocating what is allocated changes nothing.
bool TraceWriter::prepare(std::uint64_t end) noexcept {
  if (end > limit_) {
    if (end <= closed) stop(EFBIG);
    return false;
  }
  std::uint64_t ready = ready_.load(std::memory_order_acquire);
  const std::uint64_t target = std::min(round_up(end, window), limit_);
  if (ready < target) {
    const int error =
        identity_.holds(file_) ? ensure_space(file_, offset_of(ready), offset_of(target)) : EBADF;
    if (error != 0) {
      stop(error);
      return false;
    }
    forget_before(offset_of(ready));
  }
  while (ready < target &&
         !ready_.compare_exchange_weak(ready, target, std::memory_order_acq_rel)) {
  }
  return true;
}

/// What lies windows back is on its way to the disk and need not count as this process's memory.
/// The record of a thread that is late faults its page in again.
void TraceWriter::forget_before(Bytes offset) noexcept {
  constexpr Bytes behind = 4 * MiB;
  if (offset < behind) return;
  madvise(mapping_ + round_down(offset, MiB) - behind, MiB, MADV_DONTNEED);
}

/// Takes no further records and cuts the file to those it has. Records under way lie below the cut.
/// False if another thread did it before.
bool TraceWriter::finish() noexcept {
  const std::uint64_t end = next_.exchange(closed, std::memory_order_acq_rel);
  if (end >= closed) return false;
  const std::uint64_t kept = std::min(end, ready_.load(std::memory_order_acquire));
  // Should the cut fail, readers skip the zeros that it leaves.
  const bool ours = identity_.holds(file_);
  if (ours && ftruncate(file_, static_cast<off_t>(offset_of(kept))) != 0) return true;
  return true;
}

void TraceWriter::stop(int error) noexcept {
  if (finish() && on_stop_ != nullptr) on_stop_(error);
}

void TraceWriter::close() noexcept { finish(); }

void TraceWriter::abandon() noexcept { next_.store(closed, std::memory_order_relaxed); }

}  // namespace fragshim
