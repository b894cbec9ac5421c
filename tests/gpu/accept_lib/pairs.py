"""What an allocation and its free cost, with the shared and with the static CUDA runtime."""
import os

from .processes import cudart_folders, plain_environment, run

# Nanoseconds a pair under the shim, and how many times faster than without it.
LIMITS = {
    "malloc_512": (1000, 100),
    "malloc_1MiB": (1000, 100),
    "malloc_20MiB": (1000, 100),
    "malloc_64_in_flight": (350, None),
    "async_512": (300, None),
    "async_1MiB": (300, None),
    "async_20MiB": (300, None),
}
ROUNDS = 3  # in turn with native; a busy host only adds to a cost, so each case counts with its best


def take_costs(costs, finished):
    """The program's lines, into case → least nanoseconds so far."""
    for case in finished.json_lines():
        costs[case["case"]] = min(case["ns"], costs.get(case["case"], case["ns"]))


def judge(table, runtime, native, shimmed):
    for case, (limit, factor) in LIMITS.items():
        ns, without = shimmed.get(case), native.get(case)
        table.at_most(f"pair {runtime} {case}", ns, limit, " ns", 0)
        if factor and ns and without:
            table.at_least(f"pair {runtime} {case}: times faster than {without / 1000:.1f} us", without / ns, factor,
                           "x", 0)


def run_part(shim, table):
    library_path = cudart_folders()
    for runtime in ("shared", "static"):
        program = shim.program(f"pair_cost_{runtime}")
        if not os.path.exists(program):
            table.fail(f"pair {runtime}", "not built: there was no nvcc")
            continue
        name = f"pair_{runtime}"
        environments = {"native": plain_environment(LD_LIBRARY_PATH=library_path),
                        "shim": shim.environment(name, LD_LIBRARY_PATH=library_path)}
        costs = {which: {} for which in environments}
        for _ in range(ROUNDS):
            for which, env in environments.items():
                finished = run([program], env, 60)
                if not finished.ok:
                    table.fail(f"pair {runtime} {which}", finished.story())
                take_costs(costs[which], finished)
        judge(table, runtime, costs["native"], costs["shim"])
