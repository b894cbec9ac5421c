"""Software as people use it, each program with and without the shim: the same results, and as fast. The results
come side by side; then one program after the other is timed while all others wait."""
import concurrent.futures
import dataclasses
import glob
import os
import re
import statistics
import sys
import time

from .joblog import JobLog
from .processes import PROGRAMS, cudart_folders, plain_environment
from .turns import Worker, WorkerFailed, in_windows
from .workloads import attempt, finish, kill_workers

SECONDS = 200      # for a program's results; compiling takes most
SAME = 1e-2        # relative difference: sums of floats are not always in one order
SPEED = 0.9        # of the rate without the shim
WINDOWS = 12       # of a fifth of a second, of each program
WINDOW_LIMIT = 30  # seconds
AT_ONCE = 6        # cases, of two programs each
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@dataclasses.dataclass
class Case:
    name: str
    program: tuple       # what python3 runs
    settings: dict = dataclasses.field(default_factory=dict)       # with and without the shim
    shim_settings: dict = dataclasses.field(default_factory=dict)  # with it
    refusal: str = ""    # what the program says where it cannot work under the shim
    served: bool = True  # whether the shim is to serve memory

    def __post_init__(self):
        self.workers = {}

    def log_name(self):
        return "software_" + "".join(letter if letter.isalnum() else "_" for letter in self.name)

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


def start(case, shim):
    ours = case.settings | case.shim_settings
    environments = {"native": plain_environment(**case.settings),
                    "shim": shim.environment(case.log_name(), FRAGSHIM_QUIET="1", **ours)}
    for variant, env in environments.items():
        error_path = os.path.join(shim.out, f"{case.log_name()}_{variant}.err")
        case.workers[variant] = Worker(variant, case.command(), env, error_path)


def check_refusal(case, table, deadline):
    """The program without the shim works; with it, it says in a line why it does not."""
    case.workers["native"].expect("numbers", deadline - time.monotonic())
    shimmed = case.workers["shim"]
    try:
        shimmed.expect("numbers", deadline - time.monotonic())
    except WorkerFailed:
        pass
    said = [line.strip() for line in shimmed.errors().splitlines() if case.refusal in line]
    measured = said[0][:160] if said else shimmed.story("did not refuse")
    table.add(f"{case.name}: refused", measured, case.refusal, bool(said))
    shimmed.kill()


def check_results(case, table, deadline):
    told = {variant: worker.expect("numbers", deadline - time.monotonic())["numbers"]
            for variant, worker in case.workers.items()}
    off = differ(told["shim"], told["native"])
    table.add(f"{case.name}: {len(told['shim'])} results, relative difference", f"{off:.1e}", f"<= {SAME}", off <= SAME)


def compare_rates(table, case):
    rates = {variant: [answer["rate"] for answer in answers]
             for variant, answers in in_windows(case.workers, WINDOWS, "rate", WINDOW_LIMIT).items()}
    ratio = statistics.median(ours / theirs for ours, theirs in zip(rates["shim"], rates["native"]))
    ours, theirs = (statistics.median(rates[variant]) for variant in ("shim", "native"))
    table.at_least(f"{case.name}: rate with / without the shim ({ours:.1f} / {theirs:.1f} a second)", ratio, SPEED)


def first_part(case, shim, table):
    """Both programs' results. Whether the case is to go on."""
    deadline = time.monotonic() + SECONDS
    if not attempt(table, case, start, shim):
        return False
    if case.refusal:
        attempt(table, case, check_refusal, table, deadline)
        return False
    return attempt(table, case, check_results, table, deadline)


def second_part(case, shim, table):
    """Their rates and their ends, and what the shim's log says then."""
    compare_rates(table, case)
    finish(case, table)
    if case.served:
        count = sum(JobLog(shim.log(case.log_name())).allocations().values())
        table.at_least(f"{case.name}: allocations that the shim served", count, 1, "", 0)


def run_part(shim, table):
    wanted = os.environ.get("ACCEPT_SOFTWARE", "")
    cases = [case for case in (*other_cases(), *cudart_cases(shim.build), *torch_cases())
             if re.search(wanted, case.name)]
    pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
    try:
        good = list(pool.map(lambda case: first_part(case, shim, table), cases))
        print("      software: all results are there", flush=True)
        for case in [case for case, is_good in zip(cases, good) if is_good]:
            attempt(table, case, second_part, shim, table)
    finally:
        for case in cases:
            kill_workers(case)
        pool.shutdown(cancel_futures=True)
