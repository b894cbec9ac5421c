"""Frees and requests at the edge of what is allowed: the driver's own answers, as without the shim."""
import os

from .processes import plain_environment, run

SECONDS = 30
SAME = ("in_capture", "graph_memory", "nothing")  # with and without
OLDER = {"served by the library": 0, "cudaFree of cudaMalloc's": 0, "cudaFree of cudaMallocAsync's": 0,
         "cudaFreeAsync of cudaMalloc's": 0, "cudaFreeAsync of cudaMallocAsync's": 0, "freed twice": 1,
         "the library's own": 0, "synchronized": 0}
# Without the shim cudaFree would wait for the kernel, which waits for the host.
WAITING_KERNEL = {"launched": 0, "cudaFree": 0, "cudaFreeAsync": 0, "the kernel waits": 600, "synchronized": 0}


def answers(program, case, env):
    """What each call was for → its answer; what went wrong where the program did not come to its end."""
    finished = run([program, *case], env, SECONDS)
    told = dict(line.rsplit(": ", 1) for line in finished.output.splitlines() if ": " in line)
    return ({what: int(answer) for what, answer in told.items()} if finished.ok else
            {"it ended": finished.story(), **told})


def compare(table, item, ours, wanted):
    different = {what: (ours.get(what), wanted.get(what)) for what in ours | wanted
                 if ours.get(what) != wanted.get(what)}
    table.add(f"{item}: answers that differ of {len(wanted)}", different or 0, 0, not different and len(wanted) > 0)


def run_part(shim, table):
    program = os.path.join(shim.build, "bin", "strange_frees")
    for case in SAME:
        compare(table, f"strange frees, {case}", answers(program, [case], shim.environment(f"strange_{case}")),
                answers(program, [case], plain_environment()))
    log = shim.log("strange_older")
    older = answers(program, ["older", shim.library], plain_environment(FRAGSHIM_LOG=log, FRAGSHIM_QUIET="1"))
    compare(table, "strange frees, memory older than the library", older, OLDER)
    waiting = answers(program, ["waiting_kernel"], shim.environment("strange_waiting_kernel"))
    compare(table, "strange frees under a kernel that waits for the host", waiting, WAITING_KERNEL)
