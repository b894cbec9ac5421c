"""Frees right behind launches: a million rounds in which every byte is verified on the device."""
import os

from .processes import cudart_folders, plain_environment, run

# Name → the CUDA runtime that the program is linked with, rounds, FRAGSHIM_CONF.
RUNS = {"shared": ("shared", 1_000_000, ""), "static": ("static", 200_000, ""),
        "stitched": ("static", 200_000, "policy:stitch")}
SABOTAGED_ROUNDS = 20_000
SECONDS_FOR_A_MILLION = 60


def run_part(shim, table):
    library_path = cudart_folders()
    for name, (runtime, rounds, conf) in RUNS.items():
        program = shim.program(f"free_after_launch_{runtime}")
        if not os.path.exists(program):
            table.fail(f"frees {name}", "not built: there was no nvcc")
            continue
        env = shim.environment(f"frees_{name}", LD_LIBRARY_PATH=library_path, FRAGSHIM_CONF=conf)
        finished = run([program, str(rounds)], env, 90)
        result = next(finished.json_lines(), None)
        if result is None:
            table.fail(f"frees {name}", finished.story())
            continue
        table.equal(f"frees {name}: wrong words in {result['rounds']} rounds", result["wrong"], 0)
        if rounds == 1_000_000:
            table.at_most(f"frees {name}: a million rounds", result["seconds"], SECONDS_FOR_A_MILLION, " s", 1)
    prove_detection(shim, table, library_path)


def prove_detection(shim, table, library_path):
    """Blocks handed out at once, by the program itself and without the shim, must be noticed."""
    program = shim.program("free_after_launch_static")
    if not os.path.exists(program):
        return
    finished = run([program, str(SABOTAGED_ROUNDS), "--sabotage"], plain_environment(LD_LIBRARY_PATH=library_path), 60)
    result = next(finished.json_lines(), None)
    wrong = result["wrong"] if result else 0
    table.add("frees: wrong words found when blocks are reused recklessly", wrong, "> 0", wrong > 0)
