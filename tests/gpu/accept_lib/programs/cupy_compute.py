"""Linear algebra in CuPy by each of its allocators (pool, none, stream-ordered), against NumPy."""
import cupy
import numpy as np
from answer import answer

ALLOCATORS = {
    "pool": lambda: cupy.get_default_memory_pool().malloc,
    "none": lambda: None,
    "async": lambda: cupy.cuda.MemoryAsyncPool().malloc,
}


def worst_error(rng):
    """The largest difference from the host's results, and the sum of the device's."""
    worst, total = 0.0, 0.0
    for i in range(30):
        a = rng.standard_normal((50 + 31 * i, 200))
        b = rng.standard_normal((200, 70 + i))
        stream = cupy.cuda.Stream(non_blocking=bool(i % 2))
        with stream:
            device = cupy.exp(-cupy.abs(cupy.asarray(a) @ cupy.asarray(b))).sum(axis=0)
            result = cupy.asnumpy(cupy.sort(device))
        stream.synchronize()
        host = np.sort(np.exp(-np.abs(a @ b)).sum(axis=0))
        worst = max(worst, float(np.abs(result - host).max()))
        total += float(result.sum())
    return worst, total


def main():
    errors, sums = {}, []
    for name, make in ALLOCATORS.items():
        cupy.cuda.set_allocator(make())
        errors[name], total = worst_error(np.random.default_rng(0))
        sums.append(total)
    assert max(errors.values()) < 1e-8, errors
    device = cupy.ones((500, 500))
    print("RIGHT to", {name: f"{error:.1e}" for name, error in errors.items()})
    answer(sums, lambda: (device @ device).sum(), cupy.cuda.get_current_stream().synchronize)


main()
