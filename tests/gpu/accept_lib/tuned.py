"""Record, tune, believe: a workload is recorded under the shim, `tune` finds the setting for PyTorch's own
allocator at a cap, and PyTorch must then complete under that cap, reserving what was predicted."""
import concurrent.futures
import json
import os
import sys

from .processes import PROGRAMS, plain_environment, run
from .workloads import SCRIPTS

CAPPED = os.path.join(PROGRAMS, "capped.py")
CASES = {"train_tiny": ("train_lm.py", "tiny", "40"), "moe": ("loads.py", "moe", "60", "40"),
         "detect": ("loads.py", "detect", "60", "40")}
ROOM = 1.1         # times the peak of what is asked for: the cap that is tuned for first
PREDICTED = 0.01   # of the reserved peak
CAPACITIES = 16    # steps between what two settings need


def completed(finished):
    if not finished.ok:
        raise RuntimeError(finished.story())
    return finished


def fragtool(shim, command, *arguments):
    """What a command of fragtool answers in JSON."""
    tool = os.path.join(shim.build, "bin", "fragtool")
    return json.loads(completed(run([tool, command, "--json", *arguments], plain_environment(), 120)).output)


def record(shim, name):
    """The trace of a run under the shim."""
    trace = os.path.join(shim.out, name + ".fstrace")
    script, *arguments = CASES[name]
    env = shim.environment("tuned_" + name, FRAGSHIM_TRACE=trace, FRAGSHIM_QUIET="1")
    completed(run([sys.executable, os.path.join(SCRIPTS, script), *arguments], env, 120))
    return trace


def tune(shim, trace, capacity):
    """tune's answer for PyTorch, and what it foretells of its default."""
    answer = fragtool(shim, "tune", "--capacity", str(capacity), trace)
    default = [row for row in answer["settings"] if row["allocator"] == "pytorch" and not row["conf"]][0]
    return answer["pytorch"], default


def natively(name, conf, capacity):
    """PyTorch's own allocator under that setting and cap: its statistics."""
    script, *arguments = CASES[name]
    env = plain_environment(PYTORCH_CUDA_ALLOC_CONF=conf) if conf else plain_environment()
    command = [sys.executable, CAPPED, str(capacity), os.path.join(SCRIPTS, script), *arguments]
    finished = completed(run(command, env, 120))
    stats = finished.told("CAPPED")
    if stats is None:
        raise RuntimeError(finished.story())
    return stats


def compare(table, name, answers, capacity):
    """PyTorch's runs at one cap, at the same time, against what the replay foretold of each: what → foretold."""
    confs = [foretold["conf"] for foretold in answers.values()]
    with concurrent.futures.ThreadPoolExecutor(len(confs)) as pool:
        runs = list(pool.map(lambda conf: natively(name, conf, capacity), confs))
    for (what, foretold), stats in zip(answers.items(), runs):
        judge(table, f"{name} at {capacity / 2**30:.2f} GiB, {what} ({foretold['conf'] or 'default'})", foretold, stats)


def judge(table, item, foretold, stats):
    if foretold["ooms"]:
        table.add(f"{item}: out of memory, as foretold", f"{stats['ooms']} times", ">= 1", stats["ooms"] >= 1)
        return
    table.add(f"{item}: completes", f"{stats['ooms']} failures, {stats['retries']} retries",
              f"0 failures ({foretold['retries']} retries foretold)", stats["ooms"] == 0)
    off = stats["reserved_peak"] / foretold["reserved_peak"] - 1
    table.add(f"{item}: reserved peak {stats['reserved_peak'] / 2**30:.3f} GiB against the foretold", f"{off:+.2%}",
              f"within {PREDICTED:.0%}", abs(off) <= PREDICTED)


def check(shim, table, name):
    try:
        foretell(shim, table, name)
    except RuntimeError as error:
        table.fail(f"{name} tuned", error)


def capacity_between(shim, trace, enough, default_needs):
    """A capacity, `enough` for some setting, in which PyTorch's default fails: the middle one of those tried. What
    completes in some capacity may fail in a larger one, and the other way round."""
    tried = [enough + (default_needs - enough) * part // CAPACITIES >> 20 << 20 for part in range(1, CAPACITIES)]
    with concurrent.futures.ThreadPoolExecutor(len(tried)) as pool:
        ooms = pool.map(lambda each: fragtool(shim, "replay", "--capacity", str(each), trace)["ooms"], tried)
        failing = [each for each, count in zip(tried, ooms) if count]
    return failing[len(failing) // 2] if failing else None


def foretell(shim, table, name):
    trace = record(shim, name)
    capacity = int(fragtool(shim, "replay", trace)["allocated_peak"] * ROOM) >> 20 << 20
    advice, default = tune(shim, trace, capacity)
    compare(table, name, {"recommended": advice["best"], "default": default}, capacity)
    if default["ooms"]:
        return
    lower = capacity_between(shim, trace, advice["least_needed"], default["needed"])
    if lower is None:
        table.fail(f"{name} tuned", "the default completes wherever another setting does")
        return
    advice, default = tune(shim, trace, lower)
    compare(table, name, {"recommended": advice["best"], "default": default}, lower)


def steps(shim, table):
    """One function a case; they may run side by side."""
    return [lambda name=name: check(shim, table, name) for name in CASES]
