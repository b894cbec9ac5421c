"""Programs that never use CUDA: nothing is written, nothing is said, nothing is slower."""
import os
import statistics
import tempfile
import time

from .processes import plain_environment, run

COMMANDS = (["ls", "/"], ["bash", "-c", "true"], ["python3", "-c", "pass"])
RUNS = 25
NOISE_MS = 1.0


def startup_ms(command, folder, environments):
    """Median milliseconds of the command in each environment, taken in turn."""
    times = [[] for _ in environments]
    for _ in range(RUNS):
        for env, taken in zip(environments, times):
            begin = time.perf_counter()
            run(command, env, 30, cwd=folder)
            taken.append((time.perf_counter() - begin) * 1000)
    return [statistics.median(taken) for taken in times]


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
        table.at_most(f"plain {name}: start-up beyond {without:.1f} ms", under - without, max(NOISE_MS, without * 0.1),
                      " ms", 2)
