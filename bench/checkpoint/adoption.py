#!/usr/bin/env python3
"""Measures what committing a script's own checkpoints costs its loop, within one training: it saves in turns to a path that
`adopt` names and to one that it does not, so that whatever else the machine does meets both.

Usage: bench/checkpoint/adoption.py --ours PATH/trackway --python PATH/TO/PYTHON [--mebibytes 128] [--seconds 12] [--pairs 10]

`PATH/TO/PYTHON` has torch. A part of the training is one save with `torch.save` and the same number of steps after it, about
`--seconds` long; a pair is one part of either kind, in an order that changes. Measured is a loop that computes on every core, and one
that leaves a core idle, as a training on a GPU does; each also with `adopt` naming nothing, which shows what the machine does to the
figure. Printed are the ratios within a pair, of elapsed time and of the script's own processor time, which other work on the machine
changes less: medians, quartiles and extremes; and how many saves were committed (aim: a ratio of 1.01).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TRAINING = """
import json, os, sys, time, torch
size, seconds, pairs, threads = int(sys.argv[1]) << 20, float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(threads)
state = {"weights": torch.rand(size // 4), "step": 0}
matrix = torch.rand(768, 768)

def part(name, steps):
    global matrix
    state["step"] += steps
    started, worked = time.perf_counter(), time.process_time()
    torch.save(state, name)
    for _ in range(steps):
        matrix = torch.tanh(matrix @ matrix)
    return {"name": name, "seconds": time.perf_counter() - started, "processor_seconds": time.process_time() - worked}

part("warm.pt", 200)
counted = part("warm.pt", 1000)["seconds"] / 1000
steps = max(1, int(seconds / counted))
parts = []
for pair in range(pairs):
    for name in ("adopted.pt", "plain.pt") if pair % 2 else ("plain.pt", "adopted.pt"):
        parts.append(part(name, steps))
open("parts.json", "w").write(json.dumps({"parts": parts}))
"""


def training(arguments: argparse.Namespace, threads: int, adopt: list[str]) -> dict:
    """The times of each part, and how many saves were committed."""
    with tempfile.TemporaryDirectory(prefix="trackway-bench-", dir=arguments.folder) as made:
        folder = Path(made)
        (folder / "train.py").write_text(TRAINING)
        values = (arguments.mebibytes, arguments.seconds, arguments.pairs, threads)
        command = [str(arguments.python), "train.py", *[str(value) for value in values]]
        (folder / "run.toml").write_text(f"[run]\nname = \"adoption\"\ncommand = {json.dumps(command)}\n[checkpoint]\nadopt = {json.dumps(adopt)}\n")
        environment = os.environ | {"TRACKWAY_HOME": str(folder / "home")}
        ended = subprocess.run([arguments.ours.resolve(), "run", "run.toml"], cwd=folder, env=environment, capture_output=True, text=True)
        if ended.returncode != 0:
            sys.exit(ended.stdout + ended.stderr)
        result = json.loads((folder / "parts.json").read_text())
        counted = [arguments.ours.resolve(), "sql", "--json", "select count(*) as committed from events where kind = 'checkpoint_adopted'"]
        committed = json.loads(subprocess.run(counted, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout)
        return result | committed[0]


def quartiles(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:7.4f}  quartiles {low:.4f} .. {high:.4f}  [{min(values):.4f} .. {max(values):.4f}]"


def report(name: str, result: dict) -> None:
    part = statistics.median(one["seconds"] for one in result["parts"])
    print(f"  {name}: {result['committed']} of {len(result['parts']) // 2} committed, a part {part:.2f} s")
    for figure in ("seconds", "processor_seconds"):
        adopted, plain = ([one[figure] for one in result["parts"] if one["name"] == kind] for kind in ("adopted.pt", "plain.pt"))
        print(f"    {figure:<20}{quartiles([ours / theirs for ours, theirs in zip(adopted, plain, strict=True)])}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", type=Path, required=True, help="the binary, built for release")
    parser.add_argument("--python", type=lambda path: Path(path).absolute(), default=Path(sys.executable))
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; else the one for temporary files")
    parser.add_argument("--mebibytes", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--cores", choices=("all", "idle"), help="only this loop")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    loops = {"all": ("every core", cores), "idle": ("a core left idle", max(1, cores - 1))}
    print(f"{arguments.pairs} pairs of parts, each with a save of {arguments.mebibytes} MiB; ratios within a pair, medians")
    for loop, (name, threads) in loops.items():
        if arguments.cores in (None, loop):
            report(f"{name}, committed / not", training(arguments, threads, ["adopted.pt"]))
            report(f"{name}, neither committed", training(arguments, threads, []))


if __name__ == "__main__":
    main()
