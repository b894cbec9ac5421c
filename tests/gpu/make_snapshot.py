#!/usr/bin/env python3
"""Makes small PyTorch memory snapshots on a GPU, for tests/data/snapshots.

usage: make_snapshot.py FOLDER          one process for each variant
       make_snapshot.py FOLDER VARIANT  plain, expandable or wrapped

Each variant is written to FOLDER/torch_VARIANT.pickle, and a line with what torch.cuda says of
the same moment is printed as JSON.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

VARIANTS = {"plain": "", "expandable": "expandable_segments:True", "wrapped": ""}
MIB = 1 << 20


def allocate(torch, size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def step(torch, index, weights, side):
    """One step of a make-believe training: layers of uneven length, one of them on two streams."""
    length = 1 + index % 3
    activations = [allocate(torch, length * MIB + 4096 * layer) for layer in range(6)]
    with torch.cuda.stream(side):
        shared = allocate(torch, 3 * MIB)
    shared.record_stream(torch.cuda.current_stream())
    gradients = [allocate(torch, weight.numel()) for weight in weights]
    del activations, shared
    if index == 5:
        torch.cuda.empty_cache()
    return gradients


def run(folder, variant):
    import torch

    entries = 60 if variant == "wrapped" else 100_000
    torch.cuda.init()
    early = [allocate(torch, 700_000), allocate(torch, 12 * MIB)] if variant == "wrapped" else []
    torch.cuda.memory._record_memory_history(max_entries=entries, stacks="python")
    side = torch.cuda.Stream()
    weights = [allocate(torch, size) for size in (1000, 300_000, 2 * MIB, 25 * MIB)]
    for index in range(8):
        step(torch, index, weights, side)
    torch.cuda.synchronize()
    path = Path(folder) / f"torch_{variant}.pickle"
    torch.cuda.memory._dump_snapshot(str(path))
    print(json.dumps({"snapshot": path.name, "conf": VARIANTS[variant],
                      "torch": torch.__version__, "file_bytes": path.stat().st_size,
                      "memory_reserved": torch.cuda.memory_reserved(),
                      "max_memory_reserved": torch.cuda.max_memory_reserved(),
                      "memory_allocated": torch.cuda.memory_allocated()}), flush=True)
    del early


def main():
    if len(sys.argv) not in (2, 3) or len(sys.argv) == 3 and sys.argv[2] not in VARIANTS:
        sys.exit(__doc__)
    if len(sys.argv) == 3:
        run(sys.argv[1], sys.argv[2])
        return
    os.makedirs(sys.argv[1], exist_ok=True)
    for variant, conf in VARIANTS.items():
        environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf)
        subprocess.run([sys.executable, __file__, sys.argv[1], variant], env=environment,
                       check=True)


main()
