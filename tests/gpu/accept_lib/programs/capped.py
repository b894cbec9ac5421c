"""Runs a workload script under PyTorch's own allocator and a cap: capped.py BYTES SCRIPT [ARGUMENT]...

Prints what the allocator says of the run, one JSON line; running out of memory is an answer, no failure.
"""
import json
import runpy
import sys

import torch

cap, script = int(sys.argv[1]), sys.argv[2]
sys.argv = sys.argv[2:]
total = torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction(cap / total)
try:
    runpy.run_path(script, run_name="__main__")
except torch.cuda.OutOfMemoryError:
    pass
stats = torch.cuda.memory_stats()
print("CAPPED " + json.dumps({"ooms": stats["num_ooms"], "retries": stats["num_alloc_retries"],
                              "reserved_peak": stats["reserved_bytes.all.peak"],
                              "allocated_peak": stats["allocated_bytes.all.peak"]}))
