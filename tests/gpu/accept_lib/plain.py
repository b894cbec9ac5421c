"""Programs that never use CUDA: nothing is written, nothing is said, nothing is slower."""
import os
import tempfile
import time

from .processes import plain_environment, run

COMMANDS = (["ls", "/"], ["bash", "-c", "true"], ["python3", "-c", "pass"])
SECONDS_A_COMMAND, RUNS = 4, 80  # at least
NOISE_MS = 1.0


def startup_ms(command, folder, environments):
    """Milliseconds of the command in each environment, taken in turn: the least of many runs, since what else
    the machine does only adds to it."""
    best = [float("inf")] * len(environments)
    end, runs = time.perf_counter() + SECONDS_A_COMMAND, 0
    while time.perf_counter() < end or runs < RUNS:
        runs += 1
        for i, env in enumerate(environments):
            begin = time.perf_counter()
            run(command, env, 30, cwd=folder)
            best[i] = min(best[i], (time.perf_counter() - begin) * 1000)
    return best


def run_part(shim, table):
    plain = plain_environment()
    preloaded = plain_environment(LD_PRELOAD=shim.library)
    for command in COMMANDS:
        name = " ".join(command)
        with tempfile.TemporaryDirectory() as folder:
            finished = run(command, preloaded, 30, cwd=folder)
            silent = finished.ok and not finished.error and not os.listdir(folder)
            measured = "silent" if silent else f"{finished.story()} {os.listdir(folder)}"
            table.add(f"plain {name}", measured, "exit 0, nothing written or said", silent)
            without, under = startup_ms(command, folder, (plain, preloaded))
        table.at_most(f"plain {name}: start-up beyond {without:.1f} ms", under - without,
                      max(NOISE_MS, round(without * 0.05, 2)), " ms", 2)
