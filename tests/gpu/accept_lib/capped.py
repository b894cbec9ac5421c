"""PyTorch's workloads under the shim with hardly more memory than they hold at their peaks: they must complete, at
the speed that they have with all of the GPU."""
import dataclasses
import statistics
import time

from .joblog import JobLog
from .workloads import BUILDING, SPEED, WORKLOADS, finish, kill_workers, run_round, run_variants

CAP = 1.02  # of the peak that is allocated in stream order, beside what the callers of cudaMalloc hold
MIB = 1 << 20


def run_part(shim, table):
    """Twice: alone, which tells the peaks, then with and without the cap in turn."""
    loads = [dataclasses.replace(load) for load in WORKLOADS if load.expandable is not None]
    limits = {}  # MiB
    try:
        whole = run_round(loads, lambda load: {"whole": environment(shim, load, "whole")},
                          lambda load: limits.update({load.name: look_for_limit(load, shim, table)}), shim.out, table)
        again = [dataclasses.replace(load) for load in whole]
        loads += again
        run_round(again, lambda load: {"whole": environment(shim, load, "whole"), "capped": environment(
            shim, load, "capped", FRAGSHIM_CONF=f"memory_limit_mb:{limits[load.name]}")},
                  lambda load: compare(load, shim, table, limits[load.name]), shim.out, table)
    finally:
        for load in loads:
            kill_workers(load)


def environment(shim, load, variant, **extra):
    return shim.environment(f"capped_{load.name}_{variant}", **extra, **BUILDING)


def last_records(shim, load, variant):
    log = JobLog(shim.log(f"capped_{load.name}_{variant}"))
    return {heap: log.last("exit", heap) for heap in ("stream_ordered", "synchronous")}


def look_for_limit(load, shim, table):
    run_variants(load)
    finish(load, table)
    held = last_records(shim, load, "whole")
    bytes_ = held["stream_ordered"]["allocated_peak"] * CAP + held["synchronous"].get("reserved_peak", 0)
    return int(bytes_ / MIB) + 1


def compare(load, shim, table, limit):
    begin = time.monotonic()
    rates, _ = run_variants(load)
    finish(load, table)
    ratio = statistics.median(capped / whole for capped, whole in zip(rates["capped"], rates["whole"]))
    held = last_records(shim, load, "capped")["stream_ordered"]
    table.add(f"{load.name} below {limit} MiB: requests that failed", held.get("ooms"), 0, held.get("ooms") == 0)
    table.at_least(f"{load.name} below {limit} MiB: speed beside the same without a limit, {load.windows} windows "
                   f"({held.get('retries')} retries)", ratio, SPEED)
    print(f"      {load.name} capped: {time.monotonic() - begin:.0f} s", flush=True)
