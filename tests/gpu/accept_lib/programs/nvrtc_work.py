"""A kernel compiled at run time (NVRTC, through CuPy), on memory of CuPy's pool."""
import cupy
import numpy as np
from answer import answer

SOURCE = r"""
extern "C" __global__ void axpy(const float* x, float* y, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""


def once(kernel, count):
    x, y = cupy.arange(count, dtype=cupy.float32), cupy.ones(count, dtype=cupy.float32)
    kernel(((count + 255) // 256,), (256,), (x, y, np.float32(2), np.int32(count)))
    return y


def main():
    kernel = cupy.RawKernel(SOURCE, "axpy", backend="nvrtc")
    sums = []
    for count in (1, 777, 100000):
        result = cupy.asnumpy(once(kernel, count))
        assert (result == 2 * np.arange(count, dtype=np.float32) + 1).all()
        sums.append(float(result.mean()))
    answer(sums, lambda: once(kernel, 100000), cupy.cuda.get_current_stream().synchronize)


main()
