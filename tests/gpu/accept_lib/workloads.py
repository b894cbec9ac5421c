"""PyTorch's workloads under the shim and without it, in turn: losses, statistics, speed and memory."""
import dataclasses
import os
import statistics
import sys
import time

from .joblog import JobLog
from .processes import plain_environment
from .turns import Worker, WorkerFailed, take_turns

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "workloads")
SPEED = 0.97           # of the native allocator's steps per second, at least
MEMORY_SLACK = 0.03    # of reserved / allocated above expandable_segments', at most
# Relative differences: sums of floats are not always in one order, and training carries that on.
FIRST_LOSS, LOSSES = 2e-3, 2e-2
COMPARED_LOSSES = 20   # the first ones; later ones drift apart between two runs without the shim, too
BUILD_LIMIT = 150      # seconds until all models are built, side by side
ENDLESS = "100000"     # seconds for loads.py: it ends by its number of steps


@dataclasses.dataclass
class Workload:
    name: str
    script: str
    modules: tuple
    arguments: tuple    # of the script; the number of steps comes behind them
    signal: str         # what tells that a step is done: the "optimizer", or the "clock" (see worker.py)
    warm: int           # steps before those that are timed, at least 1
    window: int         # steps in a row of one variant
    windows: int        # of each variant, in turn, in each round
    expandable: float   # expandable_segments' reserved / allocated; None: not compared
    at_once: int = 4    # variants that fit the GPU side by side: they keep their caches between turns
    turn_limit: float = 60

    def __post_init__(self):
        self.workers = {}
        self.seconds = 0  # that its first round took
        self.rates = []  # of each round: variant → steps per second of each window

    def in_time(self, deadline):
        """Whether a round will end in time; the first one always is."""
        return not self.rates or time.monotonic() + self.seconds < deadline

    def request(self):
        steps = self.warm + self.windows * self.window
        return {"arguments": [*self.arguments, str(steps)], "signal": self.signal, "warm": self.warm,
                "window": self.window, "windows": self.windows}


# A GPU's host is seldom quiet: many windows as short as can be, each against the other variants' same steps right
# before or after it, tell more than few long ones; and every window is run once more by other processes, if there is
# time. Of rl a third is cuDNN compiling kernels for new lengths on the host, the noisiest of all: more rounds say more.
ROUNDS = int(os.environ.get("ACCEPT_ROUNDS", 2))
WORKLOADS = [
    Workload("train_tiny", "train_lm.py", ("transformers",), ("tiny",), "optimizer", 20, 2, 32, 1.111),
    Workload("train_small", "train_lm.py", ("transformers",), ("small",), "optimizer", 8, 1, 24, 1.047, at_once=2),
    Workload("moe", "loads.py", (), ("moe", ENDLESS), "optimizer", 6, 1, 24, 1.024),
    Workload("detect", "loads.py", ("torchvision",), ("detect", ENDLESS), "optimizer", 6, 1, 28, 1.073),
    Workload("rl", "loads.py", ("transformers",), ("rl", ENDLESS), "optimizer", 1, 1, 8, 1.047),
    Workload("offload", "loads.py", ("transformers",), ("offload", ENDLESS), "clock", 7, 1, 16, 1.086),
    Workload("graphs", "loads.py", (), ("graphs", ENDLESS), "clock", 100, 50, 25, None),
]


# Allocators that a run can be compared with, besides PyTorch's default ("native").
OTHERS = {"expandable": "expandable_segments:True", "async": "backend:cudaMallocAsync"}

# Building a model on the host is mostly page faults: huge pages where the kernel gives them on request, and
# memory that malloc keeps instead of giving it back and faulting it in anew for the next tensor. All build at
# once, so few threads each, and those must not spin while they wait for one another.
BUILDING = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
            "MALLOC_TOP_PAD_": str(64 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
            "OMP_NUM_THREADS": "4", "OMP_WAIT_POLICY": "passive"}


def environments(load, shim, against):
    """Variant → environment: PyTorch's own allocator, the shim's, and others to compare with."""
    others = {name: plain_environment(PYTORCH_CUDA_ALLOC_CONF=OTHERS[name], **BUILDING) for name in against}
    return {"native": plain_environment(**BUILDING), "shim": shim.environment(load.name, **BUILDING)} | others


def start(load, variants, out):
    """A worker for each variant (name → environment) of a workload, asked to build its model."""
    command = [sys.executable, WORKER, os.path.join(SCRIPTS, load.script), *load.modules]
    for variant, env in variants.items():
        load.workers[variant] = Worker(variant, command, env, os.path.join(out, f"{load.name}_{variant}.err"))
    for worker in load.workers.values():
        worker.send(load.request())


def wait_until_built(load, deadline):
    for worker in load.workers.values():
        worker.answer(deadline - time.monotonic())  # ready: imported
        worker.expect("begins", deadline - time.monotonic())


def compare_losses(table, name, native, shim):
    if not native or len(native) != len(shim):
        table.add(f"{name}: losses", f"{len(shim)} losses against {len(native)}", "as many", False)
        return
    differences = [abs(a - b) / max(abs(a), 1e-6) for a, b in zip(native, shim)][:COMPARED_LOSSES]
    middle = statistics.median(differences)
    good = differences[0] <= FIRST_LOSS and middle <= LOSSES  # not so for NaN
    table.add(f"{name}: losses of {len(differences)} steps, relative difference",
              f"first {differences[0]:.1e}, median {middle:.1e}", f"<= {FIRST_LOSS}, {LOSSES}", good)


def memory_ratio(answer):
    return answer["torch"]["reserved_peak"] / max(answer["torch"]["allocated_peak"], 1)


def compare_memory(table, load, answers):
    if load.expandable is None:
        return
    others = ", ".join(f"{variant} {memory_ratio(answer):.4f}" for variant, answer in answers.items()
                       if variant != "shim")
    table.at_most(f"{load.name}: reserved / allocated at peak ({others})", memory_ratio(answers["shim"]),
                  round(load.expandable + MEMORY_SLACK, 3), "", 4)


def undisturbed(load, variant):
    """The rate of each window: the best of the rounds. Their steps are the same, so what was slower was disturbed."""
    return [max(rates) for rates in zip(*(rates[variant] for rates in load.rates))]


def compare_speed(table, load):
    """The shim against every other variant, window by window: the median. Only PyTorch's default must be matched."""
    ours = undisturbed(load, "shim")
    for variant in sorted(set(load.rates[0]) - {"shim"}):
        theirs = undisturbed(load, variant)
        lower, middle, upper = statistics.quantiles([a / b for a, b in zip(ours, theirs)], n=4, method="inclusive")
        rounds = [statistics.median(a / b for a, b in zip(rates["shim"], rates[variant])) for rates in load.rates]
        item = (f"{load.name}: steps/s of {variant}, {statistics.median(ours):.2f} against "
                f"{statistics.median(theirs):.2f} ({len(ours)} windows, half of them {lower:.2f} to {upper:.2f}; "
                f"rounds {', '.join(f'{median:.3f}' for median in rounds)})")
        table.at_least(item, middle, SPEED if variant == "native" else 0)


def compare_statistics(table, name, stats, log):
    """PyTorch's figures come from the shim's counters, so they must be the log's to the byte."""
    last = log.last("exit", "stream_ordered")
    trim = log.last("trim", "stream_ordered")
    pairs = {"allocated_peak": last.get("allocated_peak"), "reserved_peak": last.get("reserved_peak"),
             "reserved": trim.get("reserved")}
    wrong = {key: (stats[key], value) for key, value in pairs.items() if stats[key] != value}
    measured = f"torch, log: {wrong}" if wrong else f"{stats['allocated_peak']}, {stats['reserved_peak']} bytes"
    table.add(f"{name}: torch.cuda statistics and the log", measured, "the same", not wrong)


def run_variants(load):
    """Variant → rates and variant → answer of all variants, as many at once as fit the GPU."""
    variants, rates, answers = list(load.workers), {}, {}
    for first in range(0, len(variants), load.at_once):
        some = {variant: load.workers[variant] for variant in variants[first:first + load.at_once]}
        their_rates, their_answers = take_turns(some, load.windows, load.turn_limit)
        rates |= their_rates
        answers |= their_answers
    return rates, answers


def finish(load, table):
    """Lets the workers end as programs do."""
    for worker in load.workers.values():
        worker.close()  # all at once: to end takes a second
    for variant, worker in load.workers.items():
        status = worker.status()
        if status != 0:
            table.fail(f"{load.name} {variant}", worker.story(f"ended with status {status}"))


def measure(load, shim, table, deadline):
    """One round of a workload whose models are built; its results are compared in the first."""
    begin = time.monotonic()
    if not load.in_time(deadline):
        print(f"      {load.name}: no time for another round", flush=True)
        kill_workers(load)
        return
    rates, answers = run_variants(load)
    load.rates.append(rates)
    stats = load.workers["shim"].ask(None, "torch", load.turn_limit)["torch"]
    finish(load, table)
    if len(load.rates) == 1:
        compare_losses(table, load.name, answers["native"]["losses"], answers["shim"]["losses"])
        compare_memory(table, load, answers)
        compare_statistics(table, load.name, stats, JobLog(shim.log(load.name)))
        load.seconds = time.monotonic() - begin
    print(f"      {load.name}: {time.monotonic() - begin:.0f} s", flush=True)


def kill_workers(load):
    for worker in load.workers.values():
        worker.kill()


def attempt(table, load, function, *args):
    """Whether the function could do its work. One workload that fails is one row; the others go on."""
    try:
        function(load, *args)
        return True
    except WorkerFailed as error:
        table.fail(load.name, str(error))
    except Exception as error:  # a mistake here, or an answer that nobody expects
        table.fail(load.name, f"{type(error).__name__}: {error}")
    kill_workers(load)
    return False


def run_round(loads, variants_of, function, out, table):
    """Starts the workloads' variants, then calls the function with one workload after the other. Gives those
    that all went well with."""
    begin = time.monotonic()
    started = [load for load in loads if attempt(table, load, start, variants_of(load), out)]
    # Nothing is timed while another model is being built.
    built = [load for load in started if attempt(table, load, wait_until_built, begin + BUILD_LIMIT)]
    print(f"      models: {time.monotonic() - begin:.0f} s", flush=True)
    return [load for load in built if attempt(table, load, function)]


def run_part(shim, table, names, against, deadline):
    """All workloads, or those of these names; no further round of one begins that would end after the deadline."""
    chosen = [load for load in WORKLOADS if names is None or load.name in names]
    try:
        left = chosen  # a workload that fails is not in the next round
        for _ in range(ROUNDS):
            left = [load for load in left if load.in_time(deadline)]
            left = run_round(left, lambda load: environments(load, shim, against),
                             lambda load: measure(load, shim, table, deadline), shim.out, table)
    finally:
        for load in chosen:
            kill_workers(load)
            if load.rates:  # of the rounds that there were
                compare_speed(table, load)
