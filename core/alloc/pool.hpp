// Host memory for the allocator's own records: taken from the system in slabs and recycled, so
// that no operation on a hot path asks the program's malloc for anything.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace fragshim {

inline constexpr std::size_t huge_page = std::size_t{2} << 20;

/// Anonymous zeroed memory straight from the system, in huge pages where it is large enough for
/// them: with a million records the translation of addresses would cost more than the records.
/// Null when there is none. Goes back by munmap.
inline void* map_host_memory(std::size_t bytes) noexcept {
  const std::size_t spare = bytes >= huge_page ? huge_page : 0;  // to align it
  void* memory =
      mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (spare == 0) return memory;
  auto* const start = static_cast<unsigned char*>(memory);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(start) % huge_page;
  if (before > 0) munmap(start, before);
  if (spare > before) munmap(start + before + bytes, spare - before);
  madvise(start + before, bytes, MADV_HUGEPAGE);
  return start + before;
}

/// A recycling pool of T. Not thread-safe. Addresses are stable; slabs are kept until the pool
/// dies. T is trivially destructible.
template <class T>
class Pool {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    while (slabs_ != nullptr) {
      Slab* next = slabs_->next;
      munmap(slabs_, slabs_->bytes);
      slabs_ = next;
    }
  }

  /// A fresh, value-initialised T; null when the host has no memory.
  T* take() noexcept {
    if (free_ == nullptr && !grow()) return nullptr;
    Cell* cell = free_;
    free_ = cell->next;
    --available_;
    return new (cell) T{};
  }

  void give(T* object) noexcept {
    Cell* cell = new (object) Cell;
    cell->next = free_;
    free_ = cell;
    ++available_;
  }

  /// Makes sure that the next `count` calls of take() succeed, so that callers can fail before
  /// they change anything. False: the host has no memory.
  bool prepare(std::size_t count) noexcept {
    while (available_ < count) {
      if (!grow()) return false;
    }
    return true;
  }

 private:
  union Cell {
    Cell* next;
    alignas(T) unsigned char bytes[sizeof(T)];
  };
  struct Slab {
    Slab* next;
    std::size_t bytes;
  };
  static constexpr std::size_t first_slab = std::size_t{64} << 10;
  static constexpr std::size_t largest_slab = std::size_t{32} << 20;

  bool grow() noexcept {
    const std::size_t bytes = next_slab_;
    void* memory = map_host_memory(bytes);
    if (memory == nullptr) return false;
    if (next_slab_ < largest_slab) next_slab_ *= 2;
    slabs_ = new (memory) Slab{slabs_, bytes};
    constexpr std::size_t header =
        (sizeof(Slab) + alignof(Cell) - 1) / alignof(Cell) * alignof(Cell);
    static_assert(header + sizeof(Cell) <= first_slab, "every slab has a cell");
    auto* cells = reinterpret_cast<Cell*>(static_cast<unsigned char*>(memory) + header);
    // Chained so that cells come out in address order: neighbours in time are neighbours in memory.
    Cell* cell = cells + (bytes - header) / sizeof(Cell);
    do {
      --cell;
      cell->next = free_;
      free_ = cell;
      ++available_;
    } while (cell != cells);
    return true;
  }

  Cell* free_ = nullptr;
  std::size_t available_ = 0;
  Slab* slabs_ = nullptr;
  std::size_t next_slab_ = first_slab;
};

}  // namespace fragshim
