"""compute-sanitizer: where it is, and that an error stays one that it finds, the shim or no shim."""
import os
import re
import shutil

from .joblog import JobLog
from .processes import run

SECONDS = 60
WRITTEN = r"Invalid __global__ write of size 4"
NEAREST = r"is out of bounds[\s\S]*?nearest allocation at \w+ of size 4,?000 bytes"


def find(what):
    """Its path; None, with a line that says so, where it is not installed."""
    path = shutil.which("compute-sanitizer", path=f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin")
    if path is None:
        print(f"      {what}: left out, compute-sanitizer is not installed", flush=True)
    return path


def off_by_one(shim, table, library_path):
    """FRAGSHIM_MODE is not set: the shim sees the checker and passes all on. Cut from a segment, the block would
    have others' memory behind it, and the write would go unseen."""
    item = "a write one element past a block"
    sanitizer = find(item)
    if sanitizer is None:
        return
    env = shim.environment("off_by_one", LD_LIBRARY_PATH=library_path)
    finished = run([sanitizer, "--tool", "memcheck", shim.program("off_by_one_shared")], env, SECONDS)
    with open(os.path.join(shim.out, "off_by_one.txt"), "w", encoding="utf-8") as file:
        file.write(finished.output + finished.error)
    writes, nearest = (len(re.findall(pattern, finished.output)) for pattern in (WRITTEN, NEAREST))
    table.add(f"{item}: invalid writes that compute-sanitizer reports", writes if writes else finished.story(), 1,
              writes == 1)
    table.add(f"{item}: reported beside the block as the program asked for it", nearest, 1, nearest == 1)
    codes = [record.get("code") for record in JobLog(shim.log("off_by_one")).of_type("warning")]
    table.equal(f"{item}: what the shim warns of", codes, ["tool"])
