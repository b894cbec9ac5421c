// Writes one element past the end of a block: an error for a memory checker to find. Without one
// nothing comes of it, since nothing else lies so close behind.
#include <cstdio>

#include "cuda_check.cuh"

namespace {

constexpr unsigned count = 1000;

__global__ void fill(float* values) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= count) values[i] = 1;  // the error: it should be less than count
}

}  // namespace

int main() {
  float* values = nullptr;
  CUDA(cudaMalloc(&values, count * sizeof *values));
  fill<<<4, 256>>>(values);
  CUDA(cudaGetLastError());
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaFree(values));
  std::puts("done");
}
