#!/usr/bin/env python3
"""Measures what committing a script's own checkpoints costs its loop, within one training: it saves in turns to a path that
`adopt` names and to one that it does not, so that whatever else the machine does meets both.

Usage: bench/checkpoint/adoption.py --ours PATH/trackway --python PATH/TO/PYTHON [--mebibytes 128] [--seconds 12] [--pairs 40]

`PATH/TO/PYTHON` has torch. A part of the training is one save with `torch.save` and the steps after it, `--seconds` long; a pair is
one part of either kind, in an order that changes. Measured is a loop that computes on every core, and one that leaves a core idle, as a
training on a GPU does. A machine is not equally fast from one minute to the next, by more than what is looked for, so a part is
compared with itself first: how many steps its first half took less than its second half, in which nothing is committed any more
(printed: how long after a save the commits were made). That loss of the parts that were committed, less the loss of those that
were not, as a fraction of a part's steps, is the cost: its mean with a bootstrap interval of 95 % over the parts (aim: 0.01). The
script's own processor time for a step is compared in the same way. Where the machine's noise hides the cost, the processor time of
Trackway's processes is a bound on what they can take from a loop that uses every core: as a fraction of what all cores had.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TRAINING = """
import json, os, pathlib, sys, time, torch
size, seconds, pairs, threads = int(sys.argv[1]) << 20, float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(threads)
state = {"weights": torch.rand(size // 4), "step": 0}
matrix = torch.rand(768, 768)

def half(seconds):
    global matrix
    steps, started, worked = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - started < seconds:
        matrix = torch.tanh(matrix @ matrix)
        steps += 1
    state["step"] += steps
    return {"steps_per_second": steps / (time.perf_counter() - started), "processor_seconds_per_step": (time.process_time() - worked) / steps}

def part(name):
    torch.save(state, name)
    return {"name": name, "saved_at": time.time(), "first": half(seconds / 2), "second": half(seconds / 2)}

def of_trackway():
    total = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = stat.read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if name == sys.argv[5]:
            total += sum(int(field) for field in fields.split()[11:15])
    return total / os.sysconf("SC_CLK_TCK")

part("warm.pt")
parts, before, began = [], of_trackway(), time.time()
for pair in range(pairs):
    for name in ("adopted.pt", "plain.pt") if pair % 2 else ("plain.pt", "adopted.pt"):
        parts.append(part(name))
taken = (of_trackway() - before) / (time.time() - began) / os.cpu_count()
open("parts.json", "w").write(json.dumps({"parts": parts, "taken": taken}))
"""
COMMITTED = "select date_part('epoch', at) as at from events where kind = 'checkpoint_adopted' order by 1"


def training(arguments: argparse.Namespace, threads: int) -> tuple[dict, list[float]]:
    """The parts with the fraction of processor time that Trackway took, and when saves were committed, in seconds since 1970."""
    with tempfile.TemporaryDirectory(prefix="trackway-bench-", dir=arguments.folder) as made:
        folder = Path(made)
        (folder / "train.py").write_text(TRAINING)
        values = (arguments.mebibytes, arguments.seconds, arguments.pairs, threads, arguments.ours.name[:15])
        command = [str(arguments.python), "train.py", *[str(value) for value in values]]
        (folder / "run.toml").write_text(f"[run]\nname = \"adoption\"\ncommand = {json.dumps(command)}\n[checkpoint]\nadopt = [\"adopted.pt\"]\n")
        environment = os.environ | {"TRACKWAY_HOME": str(folder / "home")}
        ended = subprocess.run([arguments.ours.resolve(), "run", "run.toml"], cwd=folder, env=environment, capture_output=True, text=True)
        if ended.returncode != 0:
            sys.exit(ended.stdout + ended.stderr)
        asked = [arguments.ours.resolve(), "sql", "--json", COMMITTED]
        committed = json.loads(subprocess.run(asked, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout)
        return json.loads((folder / "parts.json").read_text()), [row["at"] for row in committed]


def steps_lost(part: dict) -> float:
    """The fraction of a part's steps that its first half took less than its second."""
    first, second = (part[half]["steps_per_second"] for half in ("first", "second"))
    return (second - first) / second / 2


def processor_time_added(part: dict) -> float:
    first, second = (part[half]["processor_seconds_per_step"] for half in ("first", "second"))
    return (first - second) / second / 2


def difference(adopted: list[float], plain: list[float]) -> str:
    """The difference of the means, with an interval of 95 % from 10,000 resamples of the parts."""
    draw = random.Random(7)
    mean = statistics.fmean
    resampled = sorted(mean(draw.choices(adopted, k=len(adopted))) - mean(draw.choices(plain, k=len(plain))) for _ in range(10_000))
    return f"{mean(adopted) - mean(plain):+.4f}  [{resampled[249]:+.4f} .. {resampled[9749]:+.4f}]  (adopted {mean(adopted):+.4f}, plain {mean(plain):+.4f})"


def report(name: str, result: dict, committed: list[float]) -> None:
    adopted, plain = ([one for one in result["parts"] if one["name"] == kind] for kind in ("adopted.pt", "plain.pt"))
    delays = [min((at - one["saved_at"] for at in committed if at > one["saved_at"]), default=float("nan")) for one in adopted]
    print(f"  {name}: {len(committed)} commits of {len(adopted)} saves, {statistics.median(delays):.1f} s after them (at most {max(delays):.1f})")
    for figure, of_part in (("steps lost", steps_lost), ("processor time added", processor_time_added)):
        print(f"    {figure:<22}{difference([of_part(one) for one in adopted], [of_part(one) for one in plain])}", flush=True)
    print(f"    {'taken by Trackway':<22} {result['taken']:.4f} of the processor time of all cores", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", type=Path, required=True, help="the binary, built for release")
    parser.add_argument("--python", type=lambda path: Path(path).absolute(), default=Path(sys.executable))
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; else the one for temporary files")
    parser.add_argument("--mebibytes", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--cores", choices=("all", "idle"), help="only this loop")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    loops = {"all": ("every core", cores), "idle": ("a core left idle", max(1, cores - 1))}
    print(f"{arguments.pairs} pairs of parts of {arguments.seconds:g} s, each with a save of {arguments.mebibytes} MiB; fractions of a part")
    for loop, (name, threads) in loops.items():
        if arguments.cores in (None, loop):
            report(name, *training(arguments, threads))


if __name__ == "__main__":
    main()
