// A program that takes and gives memory in every way while the driver beneath fails. Prints how
// many requests were refused, every other call that failed, and how much memory is missing at the
// end.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/preload/driver_user.hpp"

using namespace driver_user;

namespace {

constexpr int rounds = 4;
constexpr std::size_t sizes[] = {512, 3 << 20, 30 << 20};

struct Held {
  CUdeviceptr address;
  CUstream stream;
  bool stream_ordered;
};

int refused = 0;

void complain(const char* what, CUresult result) {
  if (result != CUDA_SUCCESS) std::printf("%s %d\n", what, static_cast<int>(result));
}

void take(std::vector<Held>* held, std::size_t size, CUstream stream, bool stream_ordered) {
  CUdeviceptr address = 0;
  const CUresult result =
      stream_ordered ? allocate_on(stream, &address, size) : allocate(&address, size);
  if (result == CUDA_SUCCESS) {
    held->push_back({address, stream, stream_ordered});
  } else {
    ++refused;
  }
}

CUstream new_stream() {
  CUstream stream = nullptr;
  const auto create = entry<CUresult (*)(CUstream*, unsigned)>("cuStreamCreate");
  while (create(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) continue;
  return stream;
}

void empty_pool() {
  CUmemoryPool pool = nullptr;
  const auto get = entry<CUresult (*)(CUmemoryPool*, CUdevice)>("cuDeviceGetDefaultMemPool");
  const auto trim = entry<CUresult (*)(CUmemoryPool, std::size_t)>("cuMemPoolTrimTo");
  if (get(&pool, 0) == CUDA_SUCCESS) trim(pool, 0);
}

/// Takes blocks through both doors and on two streams, gives them back on their own and on others'.
void round() {
  CUstream streams[] = {new_stream(), new_stream()};
  std::vector<Held> held;
  for (const bool stream_ordered : {false, true}) {
    for (const std::size_t size : sizes) {
      for (CUstream stream : streams) take(&held, size, stream, stream_ordered);
    }
  }
  std::size_t turn = 0;
  for (const Held& block : held) {
    CUstream on = ++turn % 3 == 0 ? streams[0] : block.stream;
    complain("free", block.stream_ordered ? release_on(on, block.address) : release(block.address));
  }
  std::vector<Held> large;
  for (const bool stream_ordered : {false, true}) {
    take(&large, std::size_t{70} << 20, streams[1], stream_ordered);
  }
  for (const Held& block : large) complain("free", release(block.address));
  empty_pool();
  for (CUstream stream : streams) {
    entry<CUresult (*)(CUstream)>("cuStreamDestroy_v2")(stream);
  }
}

/// The most that any of some answers says: what fails may be a part of the answer.
std::size_t free_memory() {
  std::size_t most = 0;
  for (int i = 0; i < 4; ++i) {
    std::size_t free = 0;
    std::size_t total = 0;
    expect(entry<CUresult (*)(std::size_t*, std::size_t*)>("cuMemGetInfo_v2")(&free, &total),
           CUDA_SUCCESS, "cuMemGetInfo");
    most = std::max(most, free);
  }
  return most;
}

}  // namespace

int main() {
  begin();
  const std::size_t before = free_memory();
  for (int i = 0; i < rounds; ++i) round();
  entry<CUresult (*)()>("cuCtxSynchronize")();
  empty_pool();
  const std::size_t after = free_memory();
  std::printf("refused %d\nmissing %lld\n", refused,
              static_cast<long long>(before) - static_cast<long long>(after));
  return 0;
}
