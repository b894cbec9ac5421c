#!/usr/bin/env python3
"""Converts traces to memory snapshots with fragtool and reads those back as others do.

usage: exported_snapshot.py FRAGTOOL TRACE...
Each must load with pickle.load, keep to the opcodes that memory_viz's unpickler knows, and hold what
memory_viz asks for: segments whose blocks fill them, and events with frames.
"""
import os
import pickle
import pickletools
import subprocess
import sys
import tempfile

# The browser's reader: no globals, no calls, no bytes, integers of 8 bytes at most.
OPCODES = {"PROTO", "FRAME", "STOP", "MARK", "MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET",
           "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT",
           "SHORT_BINUNICODE", "BINUNICODE", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "TUPLE", "TUPLE1",
           "TUPLE2", "TUPLE3", "APPEND", "APPENDS", "SETITEM", "SETITEMS"}
STATES = {"active_allocated", "active_pending_free", "inactive"}
ACTIONS = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
           "segment_unmap", "snapshot", "oom"}


def require(holds, what):
    if not holds:
        sys.exit(f"exported_snapshot: {what}")


def check_opcodes(data):
    for opcode, argument, position in pickletools.genops(data):
        require(opcode.name in OPCODES, f"opcode {opcode.name} at byte {position}")
        if opcode.name == "PROTO":
            require(2 <= argument <= 4, f"protocol {argument}")
        if opcode.name == "LONG1":
            require(-2**63 <= argument < 2**63, f"an integer of more than 8 bytes at byte {position}")


def check_frames(frames):
    for frame in frames:
        require(isinstance(frame["name"], str) and isinstance(frame["filename"], str), "a frame without names")
        require(isinstance(frame["line"], int), "a frame without a line")


def check_segment(segment):
    address = segment["address"]
    for block in segment["blocks"]:
        require(block["state"] in STATES, f"a block in state {block['state']!r}")
        require(0 <= block["requested_size"] <= block["size"], "a block that asked for more than it has")
        require(block.get("address", address) == address, "a block that is not where its segment puts it")
        check_frames(block["frames"])
        address += block["size"]
    require(address == segment["address"] + segment["total_size"], "blocks that do not fill their segment")
    for name in ("device", "stream"):
        require(isinstance(segment[name], int), f"a segment without {name}")


def check_events(traces):
    count = 0
    for events in traces:
        for event in events:
            require(event["action"] in ACTIONS, f"an event {event['action']!r}")
            for name in ("size", "stream"):
                require(isinstance(event[name], int), f"an event without {name}")
            require(event["action"] == "oom" or isinstance(event["addr"], int), "an event without an address")
            check_frames(event["frames"])
            count += 1
    return count


def check(fragtool, trace, folder):
    out = os.path.join(folder, "exported.pickle")
    subprocess.run([fragtool, "convert", trace, out], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(out, "rb") as file:
        data = file.read()
    check_opcodes(data)
    snapshot = pickle.loads(data)
    for segment in snapshot["segments"]:
        check_segment(segment)
    events = check_events(snapshot["device_traces"])
    require(events > 0, f"{trace}: no events")
    print(f"{os.path.basename(trace)}: {len(snapshot['segments'])} segments, {events} events, {len(data)} bytes")
    os.remove(out)


with tempfile.TemporaryDirectory() as temporary:
    for path in sys.argv[2:]:
        check(sys.argv[1], path, temporary)
require(len(sys.argv) > 2, "nothing to check")
