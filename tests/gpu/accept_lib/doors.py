"""What the tests of the doors ask of the stand-in driver, asked of a real one; and memory shared with a second
process."""
import os
import re

from .processes import run

SECONDS = 60
# FRAGSHIM_… → the cases to run. Those marked "standin" look into the stand-in driver.
MODES = {
    "": "[serve]",
    "CONF=policy:stitch": "[serve]~[segments]",
    "MODE=observe": "[watch]",
    "IPC=dedicated": "[dedicated]",
    "STRICT_FREE=1": "[strict]",
    "MODE=allocate": "[newest]",
}
# How memory is exported, FRAGSHIM_IPC → what the other process sees of three blocks of one segment.
SHARED = {("pointer", "refuse"): ["same", "801", "801"], ("range", "refuse"): ["same"] * 3,
          ("ordered", "refuse"): ["801"] * 3, ("pointer", "dedicated"): ["same"] * 3}


def settings(mode):
    return dict([("FRAGSHIM_" + mode).split("=", 1)]) if mode else {}


def run_cases(shim, table, mode, cases):
    command = [os.path.join(shim.build, "bin", "door_tests"), cases + "~[standin]"]
    finished = run(command, shim.environment("doors", FRAGSHIM_QUIET="1", **settings(mode)), SECONDS)
    passed = re.search(r"All tests passed \((.*)\)", finished.output)
    table.add(f"doors {cases} {mode}".strip(), passed[1] if passed else finished.story(), "all pass", bool(passed))


def share(shim, table, way, allowed, wanted):
    command = [os.path.join(shim.build, "tests", "preload", "lookup", "ipc"), way]
    finished = run(command, shim.environment("ipc", FRAGSHIM_QUIET="1", FRAGSHIM_IPC=allowed), SECONDS)
    told = finished.output.split() if finished.ok else finished.story()
    table.equal(f"three blocks shared by {way}, FRAGSHIM_IPC={allowed}", told, wanted)


def run_part(shim, table):
    for mode, cases in MODES.items():
        run_cases(shim, table, mode, cases)
    for (way, allowed), wanted in SHARED.items():
        share(shim, table, way, allowed, wanted)
