"""Worker processes that take turns: all start at once and build their models side by side; then their steps
are done window by window, one worker at a time."""
import json
import os
import selectors
import subprocess
import time

from .processes import end

EXIT_LIMIT = 30  # seconds


class WorkerFailed(Exception):
    pass


class Worker:
    """A program that says a line of JSON behind "@@ " now and then, and may wait for one. Every wait has a limit."""

    def __init__(self, name, command, env, error_path):
        self.name = name
        self.error_path = error_path
        with open(error_path, "w", encoding="utf-8") as error:
            self.process = subprocess.Popen(command, env=env, bufsize=0, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=error, start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.buffer = b""

    def send(self, request):
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise WorkerFailed(self.story("is gone")) from error

    def ask(self, request, wanted, timeout):
        """Sends a request and waits for an answer that has `wanted` in it."""
        self.send(request)
        return self.expect(wanted, timeout)

    def expect(self, wanted, timeout):
        answer = self.answer(timeout)
        if "error" in answer:
            raise WorkerFailed(f"{self.name} failed: {answer['error'][:200]}")
        if wanted not in answer:
            raise WorkerFailed(self.story(f"said {sorted(answer)} instead of {wanted!r}"))
        return answer

    def answer(self, timeout):
        deadline = time.monotonic() + timeout
        while True:
            while b"\n" not in self.buffer:
                self.read_some(deadline)
            line, self.buffer = self.buffer.split(b"\n", 1)
            if line.startswith(b"@@ "):  # the rest a program says for people
                return json.loads(line[3:])

    def read_some(self, deadline):
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            # What has come already is read even where another worker has used up the time.
            if not selector.select(max(deadline - time.monotonic(), 0)):
                self.kill()
                raise WorkerFailed(self.story("timed out"))
        data = self.process.stdout.read()
        if not data:
            raise WorkerFailed(self.story(f"ended with status {self.status()}"))
        self.buffer += data

    def close(self):
        """Tells the worker to end as a program does."""
        try:
            self.process.stdin.close()
        except OSError:
            pass  # it has ended already

    def status(self):
        """Its exit status, once it has ended; its log is complete then."""
        try:
            return self.process.wait(EXIT_LIMIT)
        except subprocess.TimeoutExpired:
            self.kill()
        return self.process.returncode

    def kill(self):
        if self.process.poll() is not None:
            return
        end(self.process)
        try:
            self.process.wait(EXIT_LIMIT)
        except subprocess.TimeoutExpired:
            pass  # it hangs in the driver: nothing more can be done to it

    def story(self, what):
        lines = self.errors().strip().splitlines()
        return f"{self.name} {what}: {lines[-1][:160] if lines else 'it said nothing'}"

    def errors(self):
        """What it has written to its standard error."""
        with open(self.error_path, encoding="utf-8", errors="replace") as error:
            return error.read()


def in_turn(workers, wanted, timeout, backwards=False):
    """Lets one worker (variant → worker) after the other go on until it stops and says `wanted`, the last one
    first if `backwards`. Gives variant → answer."""
    order = list(workers)[::-1 if backwards else 1]
    return {variant: workers[variant].ask("go", wanted, timeout) for variant in order}


def in_windows(workers, windows, wanted, timeout):
    """Variant → answers of so many windows. The order of the workers alternates: none is always the first on a
    GPU that has just been idle, or hot."""
    answers = {variant: [] for variant in workers}
    for number in range(windows):
        for variant, answer in in_turn(workers, wanted, timeout, backwards=number % 2 == 0).items():
            answers[variant].append(answer)
    return answers


def take_turns(workers, windows, timeout):
    """The steps of workers whose models are built. Gives variant → steps per second of each window, and
    variant → answer at the end."""
    in_turn(workers, "warm", timeout)
    rates = {variant: [answer["steps"] / answer["seconds"] for answer in answers]
             for variant, answers in in_windows(workers, windows, "steps", timeout).items()}
    return rates, in_turn(workers, "losses", timeout)
