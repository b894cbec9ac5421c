"""Worker processes that take turns: all start at once, one works at a time."""
import json
import os
import selectors
import subprocess
import sys
import time

from .processes import end

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")


class WorkerFailed(Exception):
    pass


class Worker:
    """One worker.py on one script. Every wait has a limit."""

    def __init__(self, script, modules, env, error_path):
        self.error_path = error_path
        with open(error_path, "w", encoding="utf-8") as error:
            self.process = subprocess.Popen([sys.executable, WORKER, script, *modules], env=env, bufsize=0,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=error,
                                            start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.buffer = b""

    def send(self, request):
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise WorkerFailed(self.story("is gone")) from error

    def ask(self, request, timeout):
        """Sends a request and waits for its answer."""
        self.send(request)
        return self.answer(timeout)

    def answer(self, timeout):
        deadline = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            self.read_some(deadline)
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line.removeprefix(b"@@"))

    def read_some(self, deadline):
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                self.kill()
                raise WorkerFailed(self.story("timed out"))
        data = self.process.stdout.read()
        if not data:
            self.process.wait()
            raise WorkerFailed(self.story(f"ended with status {self.process.returncode}"))
        self.buffer += data

    def finish(self, timeout=30):
        """Lets the worker end as a program does; its log is complete then."""
        try:
            self.process.stdin.close()
            self.process.wait(timeout)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()
        return self.process.returncode

    def kill(self):
        end(self.process)
        self.process.wait()

    def story(self, what):
        with open(self.error_path, encoding="utf-8", errors="replace") as error:
            lines = error.read().strip().splitlines()
        return f"{what}: {lines[-1][:160] if lines else 'it said nothing'}"


def take_turns(workers, request, timeout, backwards=False):
    """One run of the script by each worker (variant → worker): they prepare side by side, and their steps
    run in turn, the last one's first if `backwards`. Gives variant → answer."""
    for worker in workers.values():
        worker.send(request)
    for worker in workers.values():
        if "begins" not in worker.answer(timeout):
            raise WorkerFailed(worker.story("never looked at the clock"))
    order = list(workers)[::-1 if backwards else 1]
    return {variant: workers[variant].ask("go", timeout) for variant in order}
