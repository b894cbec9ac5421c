"""PyTorch at its limits: capped too low it must raise OutOfMemoryError, and torch.compile must work where
PyTorch keeps its own allocator."""
import os
import re
import sys

from .joblog import JobLog
from .processes import run
from .workloads import SCRIPTS

TRAIN = [sys.executable, os.path.join(SCRIPTS, "train_lm.py"), "tiny", "20"]
COMPILE = [sys.executable, os.path.join(SCRIPTS, "loads.py"), "compile", "5"]
CLASSES = ("fragmentation", "stream_bound", "rounding", "limit", "outside_memory", "true_shortage")


def raised(table, name, finished):
    """The script catches OutOfMemoryError, says so, and goes on to its RESULT."""
    caught = finished.ok and re.search(r"^OOM at step", finished.output, re.M) and "RESULT" in finished.output
    table.add(name, "OutOfMemoryError" if caught else finished.story(), "OutOfMemoryError", caught)


def memory_fraction(shim, table):
    finished = run(TRAIN, shim.environment("oom_fraction", MEM_GIB="2"), 120)
    raised(table, "capped by PyTorch's memory fraction", finished)


def memory_limit(shim, table):
    env = shim.environment("oom_limit", PYTORCH_CUDA_ALLOC_CONF="memory_limit_mb:2048")
    raised(table, "capped by memory_limit_mb", run(TRAIN, env, 120))
    record = JobLog(shim.log("oom_limit")).last("oom")
    table.add("... its class in the log", record.get("class"), "a class", record.get("class") in CLASSES)
    held = JobLog(shim.log("oom_limit")).last("exit", "stream_ordered").get("reserved_peak")
    table.at_most("... reserved at peak", held / 2**20 if held else None, 2048, " MiB", 0)


def compiled(shim, table):
    finished = run(COMPILE, shim.environment("compile", FRAGSHIM_TORCH="native"), 180)
    done = finished.ok and "LOAD compile" in finished.output
    table.add("FRAGSHIM_TORCH=native, torch.compile", "ran" if done else finished.story(), "to run", done)
    served = JobLog(shim.log("compile")).allocations().get("synchronous", 0)
    table.at_least("... segments served by the shim", served, 1, "", 0)


def steps(shim, table):
    """One function a case; they may run side by side."""
    return [lambda case=case: case(shim, table) for case in (memory_fraction, memory_limit, compiled)]
