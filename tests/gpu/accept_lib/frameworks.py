"""JAX and CuPy: a real computation, checked against the host's."""
import os
import sys

from .joblog import JobLog
from .processes import PROGRAMS, run

# name → program, environment
CASES = {
    "jax_platform": ("jax_compute.py", {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}),
    "jax_cuda_async": ("jax_compute.py", {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"}),
    "cupy": ("cupy_compute.py", {}),
}


def check(shim, table, name):
    program, extra = CASES[name]
    command = [sys.executable, os.path.join(PROGRAMS, program)]
    finished = run(command, shim.environment(name, **extra), 120)
    told = [line for line in finished.output.splitlines() if line.startswith("RIGHT")]
    right = finished.ok and bool(told)
    table.add(name, told[-1] if right else finished.story(), "the host's result", right)
    served = {heap: count for heap, count in JobLog(shim.log(name)).allocations().items() if count}
    table.add(f"{name}: served by the shim", served or "nothing", "some heap", bool(served))


def steps(shim, table):
    """One function a case; they may run side by side."""
    return [lambda name=name: check(shim, table, name) for name in CASES]
