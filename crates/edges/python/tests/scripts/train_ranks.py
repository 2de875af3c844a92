"""A small data-parallel training without a framework. `RANK=R WORLD_SIZE=N python train_ranks.py STEPS FOLDER`.

Every rank takes its own batches, the gradients are added up, and all have the same weights; besides, each has a separate
shard, and random numbers. Prints where it continued, each step, and at the end a digest of what this rank has."""

import hashlib
import os
import random
import sys
import time
from pathlib import Path

import numpy

import trackway

RANK, WORLD_SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PATIENCE_SECONDS = 60


def rejoin(parts, rank, world_size):
    rows = numpy.concatenate([part["rows"] for part in parts])
    return {"rows": numpy.array_split(rows, world_size)[rank]}


class Exchange:
    """Adds up a value of each rank; no rank is more than a step ahead."""

    def __init__(self, path: Path):
        path.touch()
        os.truncate(path, 8 * 3 * WORLD_SIZE)
        self.steps = numpy.memmap(path, numpy.int64, "r+", 0, (WORLD_SIZE,))
        self.values = numpy.memmap(path, numpy.float64, "r+", 8 * WORLD_SIZE, (2, WORLD_SIZE))

    def sum(self, step: int, value: float) -> float:
        self.values[step % 2, RANK] = value
        self.steps[RANK] = step
        until = time.monotonic() + PATIENCE_SECONDS
        while (self.steps < step).any():
            if time.monotonic() > until:
                sys.exit(f"rank {RANK} waits for others at step {step}")
            time.sleep(0.0002)
        return float(self.values[step % 2].sum())


def main(steps: int, folder: Path) -> None:
    trackway.seed(RANK)
    weights = {"w": numpy.zeros(64)}
    shard = {"rows": numpy.full((12 // WORLD_SIZE, 2), float(RANK))}
    run = trackway.attach()
    print("attached", flush=True)
    start = run.resume(weights=weights, shard=trackway.Sharded(shard, rejoin=rejoin))
    print("from", int(start), flush=True)
    exchange = Exchange(folder / f"exchange-{os.environ['TRACKWAY_EPOCH']}")
    step = start - 1
    for step, item in run.batches(range(RANK, 1_000, WORLD_SIZE), start=start, steps=steps):
        mine = item / 1_000 + random.random() + numpy.random.rand()
        weights["w"] += exchange.sum(step, mine)
        shard["rows"] += mine
        run.checkpoint(step)
        print(step, flush=True)
    run.finish()
    found = hashlib.sha256(weights["w"].tobytes() + shard["rows"].tobytes())
    found.update(repr((random.random(), numpy.random.rand(), run.epoch)).encode())
    ends = {"last": step, "rows": shard["rows"].sum(), "shared": weights["w"][0], "digest": found.hexdigest()}
    print("".join(f"{name} {value}\n" for name, value in ends.items()), end="", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
