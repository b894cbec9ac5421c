"""PyTorch's workloads under the shim and without it, in turn: losses, statistics, speed and memory."""
import dataclasses
import os
import re
import statistics
import time

from .joblog import JobLog
from .processes import plain_environment
from .turns import Worker, WorkerFailed, take_turns

SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "workloads")
TIMED_RUNS = 3
SPEED = 0.97           # of the native allocator's steps per second, at least
MEMORY_SLACK = 0.03    # of reserved / allocated above expandable_segments', at most
FIRST_LOSS, LOSSES = 2e-3, 2e-2  # relative differences: sums of floats are not always in one order


@dataclasses.dataclass
class Workload:
    name: str
    script: str
    modules: tuple
    whole: list         # arguments of the run for losses and memory: a fixed number of steps
    timed: list         # ... of those for speed
    expandable: float   # expandable_segments' reserved / allocated; None: not compared
    run_limit: float = 90

    def __post_init__(self):
        self.workers = {}


WORKLOADS = [
    Workload("train_tiny", "train_lm.py", ("transformers",), ["tiny", "40"], ["tiny", "120"], 1.111),
    Workload("train_small", "train_lm.py", ("transformers",), ["small", "30"], ["small", "40"], 1.047),
    Workload("moe", "loads.py", (), ["moe", "20", "30"], ["moe", "4"], 1.024),
    Workload("detect", "loads.py", ("torchvision",), ["detect", "20", "30"], ["detect", "4"], 1.073),
    Workload("rl", "loads.py", ("transformers",), ["rl", "20", "5"], ["rl", "20", "5"], 1.047),
    Workload("offload", "loads.py", ("transformers",), ["offload", "20", "25"], ["offload", "4"], 1.086),
    Workload("graphs", "loads.py", (), ["graphs", "20", "1500"], ["graphs", "2"], None),
]


# Allocators that a run can be compared with, besides PyTorch's default ("native").
OTHERS = {"expandable": "expandable_segments:True", "async": "backend:cudaMallocAsync"}


def start(shim, load, against):
    """A worker for each variant of a workload; they import what they need and wait."""
    environments = {name: plain_environment(PYTORCH_CUDA_ALLOC_CONF=OTHERS[name]) for name in against}
    environments |= {"native": plain_environment(), "shim": shim.environment(load.name)}
    for variant, env in environments.items():
        error_path = os.path.join(shim.out, f"{load.name}_{variant}.err")
        load.workers[variant] = Worker(os.path.join(SCRIPTS, load.script), load.modules, env, error_path)


def rate(answer):
    """Steps per second: the script's own figure where it has one, else steps by their time."""
    own = re.search(r"it/s ([0-9.]+)", answer["output"])
    if own:
        return float(own.group(1))
    steps = re.search(r"LOAD \w+ steps (\d+)", answer["output"])
    return int(steps.group(1)) / answer["seconds"] if steps and answer["seconds"] else 0


def compare_losses(table, name, native, shim):
    if not native or len(native) != len(shim):
        table.add(f"{name}: losses", f"{len(shim)} losses against {len(native)}", "as many", False)
        return
    differences = [abs(a - b) / max(abs(a), 1e-6) for a, b in zip(native, shim)]
    middle = statistics.median(differences)
    good = differences[0] <= FIRST_LOSS and middle <= LOSSES  # not so for NaN
    table.add(f"{name}: losses of {len(native)} steps, relative difference",
              f"first {differences[0]:.1e}, median {middle:.1e}", f"<= {FIRST_LOSS}, {LOSSES}", good)


def memory_ratio(answer):
    return answer["torch"]["reserved_peak"] / max(answer["torch"]["allocated_peak"], 1)


def compare_memory(table, load, answers):
    if load.expandable is None:
        return
    others = ", ".join(f"{variant} {memory_ratio(answer):.4f}" for variant, answer in answers.items() if variant != "shim")
    table.at_most(f"{load.name}: reserved / allocated at peak ({others})", memory_ratio(answers["shim"]),
                  round(load.expandable + MEMORY_SLACK, 3), "", 4)


def compare_speed(table, name, rates):
    """The shim against every other variant; only PyTorch's default must be matched."""
    shown = {variant: " ".join(f"{value:.2f}" for value in values) for variant, values in rates.items()}
    shim = statistics.median(rates["shim"])
    for variant in sorted(set(rates) - {"shim"}):
        other = statistics.median(rates[variant])
        item = f"{name}: steps/s of {variant}, {shown['shim']} against {shown[variant]}"
        table.at_least(item, shim / other if other else None, SPEED if variant == "native" else 0)


def compare_statistics(table, name, stats, log):
    """PyTorch's figures come from the shim's counters, so they must be the log's to the byte."""
    last = log.last("exit", "stream_ordered")
    trim = log.last("trim", "stream_ordered")
    pairs = {"allocated_peak": last.get("allocated_peak"), "reserved_peak": last.get("reserved_peak"),
             "reserved": trim.get("reserved")}
    wrong = {key: (stats[key], value) for key, value in pairs.items() if stats[key] != value}
    measured = f"torch, log: {wrong}" if wrong else f"{stats['allocated_peak']}, {stats['reserved_peak']} bytes"
    table.add(f"{name}: torch.cuda statistics and the log", measured, "the same", not wrong)


def measure(shim, table, load):
    whole = take_turns(load.workers, ["--losses", *load.whole], load.run_limit)
    compare_losses(table, load.name, whole["native"]["losses"], whole["shim"]["losses"])
    compare_memory(table, load, whole)
    rates = {variant: [] for variant in load.workers}
    for number in range(TIMED_RUNS):
        answers = take_turns(load.workers, load.timed, load.run_limit, backwards=number % 2 == 0)
        for variant, answer in answers.items():
            rates[variant].append(rate(answer))
    compare_speed(table, load.name, rates)
    stats = load.workers["shim"].ask(None, 30)["torch"]
    for variant, worker in load.workers.items():
        status = worker.finish()
        if status != 0:
            table.fail(f"{load.name} {variant}", worker.story(f"ended with status {status}"))
    compare_statistics(table, load.name, stats, JobLog(shim.log(load.name)))


def run_part(shim, table, names=None, against=()):
    chosen = [load for load in WORKLOADS if names is None or load.name in names]
    try:
        for load in chosen:
            start(shim, load, against)
        for load in chosen:
            try:
                for worker in load.workers.values():
                    worker.answer(90)  # ready: imported
                begin = time.monotonic()
                measure(shim, table, load)
                print(f"      {load.name}: {time.monotonic() - begin:.0f} s", flush=True)
            except WorkerFailed as error:
                table.fail(load.name, str(error))
            for worker in load.workers.values():
                worker.kill()
    finally:
        for load in chosen:
            for worker in load.workers.values():
                worker.kill()
