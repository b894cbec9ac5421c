"""Running programs with and without the shim, each with a time limit of its own."""
import dataclasses
import glob
import json
import os
import signal
import site
import subprocess
import sys
import time

# What the user's shell may have set must not leak into a measurement.
OUR_VARIABLES = ("FRAGSHIM_", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING",
                 "LD_PRELOAD")

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


@dataclasses.dataclass
class Finished:
    status: int  # as subprocess gives it: negative for a signal; None where the time was up
    output: str
    error: str
    seconds: float

    @property
    def ok(self):
        return self.status == 0

    def json_lines(self):
        """The JSON objects that the program printed, a line each."""
        return (json.loads(line) for line in self.output.splitlines() if line.startswith("{"))

    def told(self, word):
        """The JSON object that the program printed on a line behind a word; None where it printed none."""
        for line in self.output.splitlines():
            if line.startswith(word + " "):
                return json.loads(line.removeprefix(word))
        return None

    def story(self):
        """One line for the table where a program did not do what it should."""
        what = "timed out" if self.status is None else f"exit status {self.status}"
        tail = (self.error.strip() or self.output.strip()).splitlines()
        return f"{what} after {self.seconds:.0f} s: {tail[-1][:160] if tail else ''}"


def plain_environment(**extra):
    """Programs that import their neighbours leave no bytecode in the source tree."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(OUR_VARIABLES)}
    env.update(extra, PYTHONDONTWRITEBYTECODE="1")
    return env


class Shim:
    """The library of a build folder, and a folder for the logs of this run."""

    def __init__(self, build, out):
        self.build = os.path.abspath(build)
        self.library = os.path.join(self.build, "lib", "libfragshim.so")
        self.out = os.path.abspath(out)

    def log(self, name):
        return os.path.join(self.out, name + ".jsonl")

    def environment(self, name, **extra):
        """The environment of a program whose log is log(name)."""
        if os.path.exists(self.log(name)):
            os.remove(self.log(name))
        return plain_environment(LD_PRELOAD=self.library, FRAGSHIM_LOG=self.log(name), **extra)

    def program(self, name):
        return os.path.join(self.build, "bin", "gpu", name)


def end(process):
    """Kills a program that was started with its own process group, and all its children."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


running = set()  # what run() waits for, in whichever thread


def end_running():
    for process in list(running):
        end(process)


def run(command, env, timeout, cwd=None):
    """Runs a command to its end or its time limit. Never raises for what the program does."""
    begin = time.monotonic()
    try:
        process = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
    except OSError as error:
        return Finished(127, "", str(error), 0)
    running.add(process)
    try:
        output, error = process.communicate(timeout=timeout)
        status = process.returncode
    except subprocess.TimeoutExpired:
        end(process)
        output, error = process.communicate()
        status = None
    except BaseException:  # the user interrupts: it would outlive this program, in its own session
        end(process)
        raise
    finally:
        running.discard(process)
    return Finished(status, output, error, time.monotonic() - begin)


def cudart_folders():
    """Where a shared CUDA runtime may lie: pip's packages and toolkits."""
    roots = site.getsitepackages() + [site.getusersitepackages()] + sys.path
    found = [folder for root in roots for folder in glob.glob(os.path.join(root, "nvidia", "*", "lib"))
             if glob.glob(os.path.join(folder, "libcudart.so.*"))]
    found += glob.glob("/usr/local/cuda*/lib64")
    return ":".join(dict.fromkeys(found))
