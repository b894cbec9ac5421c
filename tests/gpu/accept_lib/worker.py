"""Runs a workload script, unchanged, again and again in one process, on demand.

usage: worker.py SCRIPT MODULE...     imports the modules first, then answers requests
Each line of stdin is a JSON list of the script's arguments; each answer is a line "@@ {…}" with what the
script printed, the seconds its steps took, its losses and PyTorch's own statistics in bytes. Before it,
when the script first looks at the clock because its steps begin, comes a line "@@ {"begins": true}", and
the script goes on when another line has come: so building models costs no turn. The request null empties
the cache and gives the statistics alone. With the argument "--losses" in front, the value of every loss is
taken at its backward(), which makes the steps wait for the GPU. Large tensors in host memory, new models
that is, get their random numbers from a short repeated pattern, in a tenth of the time.
"""
import contextlib
import gc
import importlib
import io
import json
import os
import runpy
import sys
import time

script, modules = sys.argv[1], sys.argv[2:]
torch = importlib.import_module("torch")
for module in modules:
    importlib.import_module(module)

real_time = time.time
real_backward = torch.Tensor.backward
first_look = []  # when the script itself first looked at the clock: its steps begin
losses = []


def watched_time():
    if not first_look and sys._getframe(1).f_code.co_filename == script:
        torch.cuda.synchronize()
        say({"begins": True})
        sys.stdin.readline()
        first_look.append(real_time())
    return real_time()


def watched_backward(self, *args, **kwargs):
    if not torch.cuda.is_current_stream_capturing():
        losses.append(float(self.detach()))
    return real_backward(self, *args, **kwargs)


def statistics():
    cuda = torch.cuda
    return {"allocated": cuda.memory_allocated(), "allocated_peak": cuda.max_memory_allocated(),
            "reserved": cuda.memory_reserved(), "reserved_peak": cuda.max_memory_reserved()}


def run_script(arguments):
    take_losses = arguments[:1] == ["--losses"]
    sys.argv = [script] + arguments[take_losses:]
    first_look.clear()
    losses.clear()
    torch.Tensor.backward = watched_backward if take_losses else real_backward
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        left = runpy.run_path(script, run_name="__main__")
    seconds = real_time() - first_look[0] if first_look else 0
    answer = {"output": printed.getvalue(), "seconds": seconds, "losses": list(losses), "torch": statistics()}
    left.clear()
    return answer


def clean_up():
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def quick(real, mean_and_scale):
    """Stands in for Tensor.normal_ or uniform_ (real): fills large host tensors from a pattern. The two
    arguments of the call give mean_and_scale of a standard pattern."""
    pattern = real(torch.empty(1 << 16))

    def fill(self, *args, **kwargs):
        rows = self.numel() // pattern.numel()
        if rows < 2 or self.is_cuda or not self.is_contiguous() or kwargs.get("generator") is not None:
            return real(self, *args, **kwargs)
        mean, scale = mean_and_scale(*args, **{key: kwargs[key] for key in kwargs if key != "generator"})
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


def say(what):
    print("@@", json.dumps(what), file=answers, flush=True)


def main():
    time.time = watched_time
    make_quick()
    say({})
    while line := sys.stdin.readline():
        arguments = json.loads(line)
        answer = {} if arguments is None else run_script(arguments)
        clean_up()
        if arguments is None:
            answer["torch"] = statistics()
        say(answer)


answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever else prints does not get between the answers
main()
