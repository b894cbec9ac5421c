// What the doors have in common: serving a request, taking memory back, and what passes through.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <optional>

#include "shim/context.hpp"
#include "shim/trace.hpp"

namespace fragshim {

/// Serves `size` bytes from the heap behind a door (which has one) and lets the log know. Under
/// pressure the other heaps of the GPU give back what they have cached. No value: the heap could
/// not do its work for another reason than memory; the call passes through.
std::optional<CUresult> serve(ContextHeap& heap, HeapKind kind, Bytes size, StreamId stream,
                              CUdeviceptr* out) noexcept;

/// Takes a block back, into whichever heap it came from: `kind` of `likely` is tried first (null:
/// all are). Invalid value for addresses that are ours, but where no live block starts. No value:
/// not ours at all.
std::optional<CUresult> take_back(ContextHeap* likely, HeapKind kind, CUdeviceptr address,
                                  const StreamRef& stream) noexcept;

/// The ledger that lists an address, which it is taken from; null where none does.
Ledger* strike_off(CUdeviceptr address, Ledger::Entry* entry) noexcept;

/// A driver's answer to an allocation that passed through: listed, or its failure logged.
void note_passed(ContextHeap& heap, HeapKind kind, Bytes size, StreamId stream, CUresult result,
                 const CUdeviceptr* out) noexcept;

/// An allocation through a door, whose heap serves it or `pass` asks the driver.
template <class Pass>
CUresult allocate_through(ContextHeap& heap, HeapKind kind, CUdeviceptr* out, std::size_t size,
                          StreamId stream, Pass pass) noexcept {
  if (heap.door(kind).heap != nullptr) {
    if (const auto answer = serve(heap, kind, size, stream, out)) return *answer;
  }
  const CUresult result = pass();
  note_passed(heap, kind, size, stream, result, out);
  return result;
}

/// A free through a door: `pass` asks the driver to free what is not ours.
template <class Pass>
CUresult free_through(ContextHeap* likely, HeapKind kind, CUdeviceptr address,
                      const StreamRef& stream, Pass pass) noexcept {
  trace_free(kind, address, stream.id);
  if (const auto answer = take_back(likely, kind, address, stream)) return *answer;
  Ledger::Entry entry;
  Ledger* const ledger = strike_off(address, &entry);
  const CUresult result = pass();
  if (ledger != nullptr && result != CUDA_SUCCESS) ledger->restore(address, entry);
  return result;
}

/// Has every heap of a GPU but `except` give back what it has cached. Bytes given back.
Bytes relieve(Gpu& gpu, const Heap* except) noexcept;

}  // namespace fragshim
