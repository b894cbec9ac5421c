"""What a program tells accept, in lines that begin with "@@ ": its numbers, then, for each line that accept sends,
how often a second it did its work in a window of time. accept so times one program while the others wait."""
import json
import sys
import time

WINDOW = 0.2  # seconds


def rate_of(step, synchronize):
    """How often a second `step` was done in one window, after one that only warms up."""
    step()
    synchronize()
    count, begin = 0, time.monotonic()
    while time.monotonic() - begin < WINDOW:
        step()
        synchronize()
        count += 1
    return count / (time.monotonic() - begin)


def say(what):
    print("@@ " + json.dumps(what), flush=True)


def answer(numbers, step, synchronize=lambda: None):
    """`numbers` are to be the same without the shim, but for rounding. `step` is timed until standard input ends."""
    say({"numbers": [float(number) for number in numbers]})
    for _ in sys.stdin:
        say({"rate": rate_of(step, synchronize)})
