"""Blocks of every size, each filled with its own pattern and verified before its free: near a memory limit,
where the heap moves memory all the time, and without one; and what a memory checker finds."""
import os
import re

from . import checker
from .joblog import JobLog
from .processes import cudart_folders, plain_environment, run

LIMIT_MIB, LIVE_MIB = 2048, 1900
BLOCKS = 1_000_000        # under the limit; ACCEPT_BLOCKS changes it
UNLIMITED_BLOCKS = 300_000
SABOTAGED_BLOCKS = 20_000
CHECKED_BLOCKS = 40_000   # under compute-sanitizer
SECONDS = 120             # for each program, and for so many blocks under the limit: others run beside it
STITCHES = 100            # moves of memory without which the run proves little


def pattern_run(table, item, command, env, seconds):
    """The program's result, with the rows that hold for every run; None where there is none."""
    finished = run(command, env, seconds)
    result = next(finished.json_lines(), None)
    if result is None or finished.status not in (0, 1):  # 1: with wrong words
        table.fail(item, finished.story())
        return None
    first = f" ({result['first'][0]})" if result["first"] else ""
    table.add(f"{item}: wrong words in {result['blocks']} blocks", f"{result['wrong']}{first}", 0, result["wrong"] == 0)
    speed = result["blocks"] / result["seconds"] if result["seconds"] else None
    table.at_least(f"{item}: blocks per second (out of memory {result['out_of_memory']} times)", speed, 0, "", 0)
    return result


def moved(shim, table, item, name):
    """The heap's last record, with a row on how often it moved memory."""
    heap = JobLog(shim.log(name)).last("exit", "stream_ordered")
    table.at_least(f"{item}: times that memory was moved", heap.get("stitches"), STITCHES, "", 0)
    return heap


def limited(shim, table, program, library_path):
    blocks = int(os.environ.get("ACCEPT_BLOCKS", BLOCKS))
    item = f"patterns below {LIMIT_MIB} MiB"
    env = shim.environment("patterns_limited", LD_LIBRARY_PATH=library_path, FRAGSHIM_QUIET="1",
                           FRAGSHIM_CONF=f"memory_limit_mb:{LIMIT_MIB}")
    seconds = SECONDS * max(1, blocks / BLOCKS)
    if pattern_run(table, item, [program, str(blocks), "--live-mib", str(LIVE_MIB)], env, seconds) is None:
        return
    heap = moved(shim, table, item, "patterns_limited")
    allocated, reserved = heap.get("allocated_peak"), heap.get("reserved_peak")
    table.at_least(f"{item}: peak reserved over peak allocated", reserved / allocated if allocated else None, 1)


def unlimited(shim, table, program, library_path):
    env = shim.environment("patterns", LD_LIBRARY_PATH=library_path, FRAGSHIM_QUIET="1")
    command = [program, str(UNLIMITED_BLOCKS), "--live-mib", str(LIVE_MIB), "--seed", "2"]
    pattern_run(table, "patterns without a limit", command, env, SECONDS)


def checked(shim, table, program, library_path):
    """compute-sanitizer sees every access to memory that is not mapped, and every call that failed: a request
    beyond the limit, too, which is no error of anybody's. FRAGSHIM_MODE: it would pass all on."""
    sanitizer = checker.find("patterns under compute-sanitizer")
    if sanitizer is None:
        return
    env = shim.environment("patterns_checked", LD_LIBRARY_PATH=library_path, FRAGSHIM_QUIET="1",
                           FRAGSHIM_CONF=f"memory_limit_mb:{LIMIT_MIB}", FRAGSHIM_MODE="allocate")
    item = f"patterns under compute-sanitizer, {CHECKED_BLOCKS} blocks"
    command = [sanitizer, "--tool", "memcheck", program, str(CHECKED_BLOCKS), "--live-mib", str(LIVE_MIB)]
    finished = run(command, env, 2 * SECONDS)
    with open(os.path.join(shim.out, "patterns_checked.txt"), "w", encoding="utf-8") as file:
        file.write(finished.output + finished.error)
    summary = re.search(r"ERROR SUMMARY: (\d+) errors?", finished.output)
    result = next(finished.json_lines(), None)
    if summary is None or result is None or finished.status not in (0, 1):  # 1: with wrong words
        table.fail(item, finished.story())
        return
    # The program asks for the error of a request that failed, so it is reported a second time.
    refused, asked = (len(re.findall(rf'"out of memory" on CUDA API call to {call}', finished.output))
                      for call in (r"(?:cu\w*Alloc|cudaMalloc)", "cudaGetLastError"))
    errors = int(summary[1]) - refused - min(refused, asked)
    table.add(f"{item}: errors besides {refused} requests beyond the limit", errors, 0, errors == 0)
    table.add(f"{item}: wrong words", result["wrong"], 0, result["wrong"] == 0)
    moved(shim, table, item, "patterns_checked")


def prove_detection(_shim, table, program, library_path):
    """Blocks freed before their verification, without the shim, must be noticed."""
    command = [program, str(SABOTAGED_BLOCKS), "--sabotage", "--sync-share", "0"]
    finished = run(command, plain_environment(LD_LIBRARY_PATH=library_path), SECONDS)
    result = next(finished.json_lines(), None)
    wrong = result["wrong"] if result else 0
    table.add("patterns: wrong words found when blocks are freed before they are verified",
              wrong if result else finished.story(), "> 0", wrong > 0)


def steps(shim, table):
    """One function a case; they may run side by side."""
    library_path = cudart_folders()
    program = shim.program("block_patterns_shared")
    if not os.path.exists(program):
        return [lambda: table.fail("patterns", "not built: there was no nvcc")]
    programs = [lambda case=case: case(shim, table, program, library_path)
                for case in (limited, unlimited, checked, prove_detection)]
    return [*programs, lambda: checker.off_by_one(shim, table, library_path)]
