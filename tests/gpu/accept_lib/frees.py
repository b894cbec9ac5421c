"""Frees right behind launches: a million rounds in which every byte is verified on the device."""
import os

from .processes import cudart_folders, plain_environment, run

ROUNDS = {"shared": 1_000_000, "static": 200_000}
SABOTAGED_ROUNDS = 20_000
SECONDS_FOR_A_MILLION = 60


def run_part(shim, table):
    library_path = cudart_folders()
    for runtime, rounds in ROUNDS.items():
        program = shim.program(f"free_after_launch_{runtime}")
        if not os.path.exists(program):
            table.fail(f"frees {runtime}", "not built: there was no nvcc")
            continue
        name = f"frees_{runtime}"
        finished = run([program, str(rounds)], shim.environment(name, LD_LIBRARY_PATH=library_path), 90)
        result = next(finished.json_lines(), None)
        if result is None:
            table.fail(f"frees {runtime}", finished.story())
            continue
        table.equal(f"frees {runtime}: wrong words in {result['rounds']} rounds", result["wrong"], 0)
        if rounds == 1_000_000:
            table.at_most(f"frees {runtime}: a million rounds", result["seconds"], SECONDS_FOR_A_MILLION, " s", 1)
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
