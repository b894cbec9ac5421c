"""Software as people use it, each program with and without the shim: the same results, and as fast."""
import concurrent.futures
import dataclasses
import glob
import os
import sys
import threading

from .joblog import JobLog
from .processes import PROGRAMS, cudart_folders, plain_environment, run

SECONDS = 200      # for a program; compiling takes most
SAME = 1e-2        # relative difference: sums of floats are not always in one order
SPEED = 0.9        # of the rate without the shim; the host is busy with the other programs
AT_ONCE = 4        # cases, of two programs each
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@dataclasses.dataclass
class Case:
    name: str
    program: tuple       # what python3 runs
    settings: dict = dataclasses.field(default_factory=dict)       # with and without the shim
    shim_settings: dict = dataclasses.field(default_factory=dict)  # with it
    refusal: str = ""    # what the program says where it cannot work under the shim
    served: bool = True  # whether the shim is to serve memory

    def command(self):
        return [sys.executable, *[os.path.join(PROGRAMS, word) if word.endswith(".py") else word
                                  for word in self.program]]


def torch_cases():
    native = {"shim_settings": {"FRAGSHIM_TORCH": "native"}, "served": False}
    compiling = {"settings": {"TORCHINDUCTOR_COMPILE_THREADS": "2"}}
    ways = [("eager", {}), ("compiled", compiling), ("reduce_overhead", native | compiling), ("graphs", {}),
            ("threads", {}), ("triton_kernel", {})]
    yield from (Case(f"torch {way}", ("torch_work.py", way), **more) for way, more in ways)
    yield from (Case(f"torch {way}", ("torch_processes.py", way))
                for way in ("loader_fork", "loader_spawn", "ddp", "fsdp", "two_ranks"))
    yield Case("torchrun", (*TORCHRUN, "torch_processes.py", "torchrun_rank"))
    shared = ("torch_processes.py", "shared_tensor")
    yield Case("torch shared_tensor", shared, refusal="does not yet support")
    yield Case("torch shared_tensor, FRAGSHIM_TORCH=native", shared, **native)


def other_cases():
    for mode in ("default", "platform", "cuda_async"):
        yield Case(f"jax {mode}", ("jax_compute.py",),
                   {} if mode == "default" else {"XLA_PYTHON_CLIENT_ALLOCATOR": mode})
    yield Case("cupy", ("cupy_compute.py",))
    yield Case("nvrtc", ("nvrtc_work.py",))


def cudart_cases(build):
    """Every generation of the CUDA runtime there is; the build folder may have older ones."""
    found = glob.glob(os.path.join(build, "cudart", "*", "nvidia", "*", "lib", "libcudart.so.*"))
    for folder in cudart_folders().split(":"):
        found += glob.glob(os.path.join(folder, "libcudart.so.[0-9]*"))
    for path in {os.path.basename(path): path for path in found if not os.path.islink(path)}.values():
        yield Case(os.path.basename(path), ("cudart_work.py", path))


def differ(ours, theirs):
    """The largest relative difference; infinite where there are not as many numbers."""
    if len(ours) != len(theirs):
        return float("inf")
    return max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(ours, theirs))


def compare(table, case, native, shim):
    theirs, ours = native.told("ANSWER"), shim.told("ANSWER")
    for which, finished, told in (("without", native, theirs), ("with", shim, ours)):
        if not finished.ok or told is None:
            table.fail(f"{case.name} {which} the shim", finished.story())
            return
    off = differ(ours["numbers"], theirs["numbers"])
    table.add(f"{case.name}: {len(ours['numbers'])} results, relative difference", f"{off:.1e}", f"<= {SAME}",
              off <= SAME)
    if ours["rate"] and theirs["rate"]:
        table.at_least(f"{case.name}: rate with / without the shim ({ours['rate']:.1f} / {theirs['rate']:.1f} a second)",
                       ours["rate"] / theirs["rate"], SPEED)


def check(shim, table, case):
    name = "software_" + "".join(letter if letter.isalnum() else "_" for letter in case.name)
    environments = (plain_environment(**case.settings),
                    shim.environment(name, FRAGSHIM_QUIET="1", **case.settings, **case.shim_settings))
    with concurrent.futures.ThreadPoolExecutor() as both:  # at once: what slows the host slows both
        native, shimmed = both.map(lambda env: run(case.command(), env, SECONDS), environments)
    if case.refusal:
        said = [line for line in (shimmed.error + shimmed.output).splitlines() if case.refusal in line]
        table.add(f"{case.name}: refused", said[0].strip()[:160] if said else shimmed.story(), case.refusal,
                  bool(said) and native.ok)
        return
    compare(table, case, native, shimmed)
    if case.served:
        count = sum(JobLog(shim.log(name)).allocations().values())
        table.at_least(f"{case.name}: allocations that the shim served", count, 1, "", 0)


def steps(shim, table):
    """One function a case; a few run at once, and what is timed one after the other."""
    room = threading.Semaphore(AT_ONCE)

    def check_in_turn(case):
        with room:
            check(shim, table, case)

    cases = [*other_cases(), *cudart_cases(shim.build), *torch_cases()]
    return [lambda case=case: check_in_turn(case) for case in cases]
