"""A CUDA runtime's own calls, by any generation of it: cudart_work.py LIBCUDART. The device is reset halfway; then
what a program compiled for per-thread default streams calls comes, too."""
import ctypes
import random
import sys

from answer import answer

runtime = ctypes.CDLL(sys.argv[1])
runtime.cudaGetErrorString.restype = ctypes.c_char_p
TO_DEVICE, TO_HOST = 1, 2
NON_BLOCKING = 1


def call(name, *arguments):
    error = getattr(runtime, name)(*arguments)
    assert error == 0, (name, error, runtime.cudaGetErrorString(error))


def size(number):
    return ctypes.c_size_t(number)


def filled_and_read(pointer, count, byte, stream, suffix):
    """Writes by the device, reads back, and compares every byte."""
    call("cudaMemsetAsync" + suffix, pointer, byte, size(count), stream)
    host = ctypes.create_string_buffer(count)
    call("cudaMemcpyAsync" + suffix, host, pointer, size(count), TO_HOST, stream)
    call("cudaStreamSynchronize" + suffix, stream)
    assert host.raw == bytes([byte]) * count
    return count * byte


def new_stream():
    stream = ctypes.c_void_p()
    call("cudaStreamCreateWithFlags", ctypes.byref(stream), NON_BLOCKING)
    return stream


def churn(seed, stream, suffix="", rounds=300):
    """Blocks from both doors, each with a byte of its own that must be there until it is freed."""
    random.seed(seed)
    total, live = 0, []
    for number in range(rounds):
        pointer, count = ctypes.c_void_p(), random.choice((1, 700, 60000, 3 << 20))
        if number % 2:
            call("cudaMalloc", ctypes.byref(pointer), size(count))
        else:
            call("cudaMallocAsync" + suffix, ctypes.byref(pointer), size(count), stream)
        total += filled_and_read(pointer, count, number % 251, stream, suffix)
        live.append((pointer, count, number))
        while len(live) > 20:
            pointer, count, number = live.pop(random.randrange(len(live)))
            host = ctypes.create_string_buffer(count)
            call("cudaMemcpy", host, pointer, size(count), TO_HOST)
            assert host.raw == bytes([number % 251]) * count
            if number % 2:
                call("cudaFree", pointer)
            else:
                call("cudaFreeAsync" + suffix, pointer, stream)
    return total


def pairs():
    pointer = ctypes.c_void_p()
    for _ in range(1000):
        call("cudaMalloc", ctypes.byref(pointer), size(1 << 20))
        call("cudaFree", pointer)


def main():
    version = ctypes.c_int()
    call("cudaRuntimeGetVersion", ctypes.byref(version))
    totals = [churn(1, new_stream())]
    call("cudaDeviceReset")
    totals += [churn(2, new_stream()), churn(3, None, "_ptsz")]
    call("cudaDeviceSynchronize")
    answer([version.value, *totals], pairs)


main()
