"""Runs a workload script, unchanged, and stops it at the boundaries of its steps until it may go on.

usage: worker.py SCRIPT MODULE...
Imports the modules, says {} and reads a request, one line of JSON:
    {"arguments": […], "signal": "optimizer" or "clock", "warm": n, "window": n, "windows": n}
Then the script runs, once. At each of these it waits for the GPU, says a line, and goes on when a line comes:
    {"begins": true}              its model is built: it made its first optimizer, or looked at the clock
    {"warm": true}                `warm` steps are done
    {"steps": n, "seconds": t}    `window` more are done, `windows` times; t from going on to the GPU's idling
Those must be all of its steps. At its end comes what it printed, its losses and PyTorch's own statistics in
bytes: {"output": …, "losses": […], "torch": {…}}, or {"error": …} where it failed. The request null empties
the cache and gives the statistics alone. What is said begins with "@@ ".

Steps end with an optimizer's step, or, for scripts without one, as loads.py looks at the clock: once before
all steps, and before each. Large tensors in host memory, new models that is, get their random numbers from a
short repeated pattern, in a tenth of the time.
"""
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import runpy
import sys
import time
import traceback

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever else prints does not get between the answers

script, modules = sys.argv[1], sys.argv[2:]
torch = importlib.import_module("torch")
for module in modules:
    importlib.import_module(module)

real_time = time.time
real_backward = torch.Tensor.backward
steps = None  # of the run that goes on
losses = []


def say(what):
    print("@@", json.dumps(what), file=answers, flush=True)


class Steps:
    """Counts the steps of one run and stops it where a window of them ends."""

    def __init__(self, signal, warm, window, windows):
        self.signal, self.warm, self.window = signal, warm, window
        self.total = warm + window * windows
        self.begun = False
        self.looks = 0  # of the script at the clock
        self.done = 0
        self.resumed = 0.0

    def begin(self):
        if not self.begun:
            self.begun = True
            torch.cuda.synchronize()
            self.pause({"begins": True})

    def look(self):
        """The script looks at the clock: once before its steps, then once before each, to see if it is over."""
        self.looks += 1
        self.begin()
        if self.signal == "clock" and self.looks > 2:
            self.step()

    def optimized(self):
        if self.signal == "optimizer":
            self.step()

    def step(self):
        self.done += 1
        beyond = self.done - self.warm
        if beyond < 0 or self.done > self.total or beyond % self.window:
            return
        torch.cuda.synchronize()
        seconds = time.perf_counter() - self.resumed
        self.pause({"steps": self.window, "seconds": seconds} if beyond else {"warm": True})

    def pause(self, what):
        say(what)
        if not sys.stdin.readline():
            raise SystemExit("nobody is there to go on for")
        self.resumed = time.perf_counter()


def watched_time():
    if steps and sys._getframe(1).f_code.co_filename == script:
        steps.look()
    return real_time()


def watched_backward(self, *args, **kwargs):
    """Keeps the loss on the GPU: its value would make every step wait."""
    if steps and not torch.cuda.is_current_stream_capturing():
        losses.append(self.detach())
    return real_backward(self, *args, **kwargs)


def watch_optimizers():
    real = torch.optim.Optimizer.__init__

    @functools.wraps(real)
    def watched(self, *args, **kwargs):
        real(self, *args, **kwargs)
        if steps:
            steps.begin()

    def after_step(_optimizer, _args, _kwargs):
        if steps:
            steps.optimized()

    torch.optim.Optimizer.__init__ = watched
    importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(after_step)


def quick(real, mean_and_scale):
    """Stands in for Tensor.normal_ or uniform_ (real): fills large host tensors from a pattern. The two
    arguments of the call give mean_and_scale of a standard pattern."""
    torch.manual_seed(0)  # the same pattern, thus the same losses, in every process
    pattern = real(torch.empty(1 << 16))

    def fill(self, *args, generator=None, **kwargs):
        rows = self.numel() // pattern.numel()
        if rows < 2 or self.device.type != "cpu" or not self.is_contiguous() or generator is not None:
            return real(self, *args, generator=generator, **kwargs)
        mean, scale = mean_and_scale(*args, **kwargs)
        flat, row = self.view(-1), (pattern * scale + mean).to(self.dtype)
        flat[:rows * row.numel()].view(rows, -1).copy_(row.expand(rows, -1))
        rest = flat[rows * row.numel():]
        rest.copy_(row[:rest.numel()])
        return self

    return fill


def make_quick():
    torch.Tensor.normal_ = quick(torch.Tensor.normal_, lambda mean=0.0, std=1.0: (mean, std))
    torch.Tensor.uniform_ = quick(torch.Tensor.uniform_, lambda low=0.0, high=1.0, **same: (
        same.get("from", low), same.get("to", high) - same.get("from", low)))


def statistics():
    cuda = torch.cuda
    return {"allocated": cuda.memory_allocated(), "allocated_peak": cuda.max_memory_allocated(),
            "reserved": cuda.memory_reserved(), "reserved_peak": cuda.max_memory_reserved()}


def run_script(arguments, **boundaries):
    global steps
    steps = Steps(**boundaries)
    sys.argv = [script, *arguments]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        left = runpy.run_path(script, run_name="__main__")
    done, total, steps = steps.done, steps.total, None
    if done != total:
        raise RuntimeError(f"{done} steps instead of {total}; {printed.getvalue().strip()[:120]}")
    answer = {"output": printed.getvalue(), "torch": statistics()}
    answer["losses"] = [float(loss) for loss in losses]
    left.clear()
    return answer


def clean_up():
    losses.clear()
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def answer_to(request):
    if request is None:
        clean_up()
        return {"torch": statistics()}
    answer = run_script(**request)
    clean_up()
    return answer


def main():
    time.time = watched_time
    torch.Tensor.backward = watched_backward
    watch_optimizers()
    make_quick()
    say({})
    while line := sys.stdin.readline():
        try:
            say(answer_to(json.loads(line)))
        except Exception as error:  # of the script, mostly
            traceback.print_exc()
            say({"error": f"{type(error).__name__}: {error}"})
            sys.exit(1)


main()
