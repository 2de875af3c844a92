#!/usr/bin/env python3
"""Logs 100,000 points in one loop with Trackway and with the tools a user would pick instead, and kills each of them.

Usage: bench/record/compare.py --python trackway=PATH [--python TOOL=PATH ...] [--rust PATH/log_latency]
           [--binary PATH/trackway] [--points 100000] [--seconds 20]

PATH is an interpreter that has the tool: trackway, mlflow (for mlflow_file and mlflow_sqlite), wandb, aim, trackio,
tensorboard (with tensorboardX) and dvclive. They take turns. Of each: nanoseconds of a call with one metric and with ten
(mean, median, 99th percentile), seconds from the last call until the tool is closed and everything is on the disk,
bytes on the disk a point, and how many of the steps whose call had returned are gone after SIGKILL. A tool that needs
longer than --seconds is stopped there; how many calls it made is printed. Of Aim the last is not measured: its reader gave
nothing back of a run that had ended in order either. With --binary ten million points are logged in one run, and read back.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOLS = {
    "json_line": "trackway", "trackway": "trackway", "trackway_named": "trackway", "tensorboard": "tensorboard",
    "trackio": "trackio", "wandb_offline": "wandb", "aim": "aim", "dvclive": "dvclive", "mlflow_file": "mlflow",
    "mlflow_sqlite": "mlflow",
}  # fmt: skip
NOT_READ = {"aim"}
TEN_MILLION = """
import math, trackway
run = trackway.attach()
for step in range(1, 1_000_001):
    noise = math.sin(step * step)
    run.log(step, loss=2 / math.sqrt(step) + noise / 10, grad_norm=1 + noise, learning_rate=1e-3 * (1 - step / 1e6),
            step_seconds=0.01 + noise * 1e-4, batch_wait_seconds=1e-4 * abs(noise), samples_per_second=6400 + noise,
            memory_allocated_bytes=8e9, memory_reserved_bytes=9e9, val_loss=2.1 / math.sqrt(step), accuracy=noise)
run.finish()
"""
QUERIES = [
    "select count(*), sum(value) from metrics",
    "select name, count(*), min(value), avg(value), max(value) from metrics group by name",
]
# How long a process logs before it is killed.
KILL_SECONDS = 2.0


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def logged(tool: str, python: str, metrics: int, options: argparse.Namespace) -> dict[str, float]:
    """One loop of a tool in a separate process."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        command = [python, HERE / "worker.py", tool, folder, metrics, options.points // metrics, options.seconds]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        if done.returncode or not done.stdout:
            sys.exit(f"{tool} failed:\n{done.stderr[-2000:]}")
        found = json.loads(done.stdout)
        found["bytes_a_point"] = size_bytes(Path(folder)) / (found["calls"] * metrics)
        return found


def lost(tool: str, python: str, options: argparse.Namespace) -> tuple[int, int]:
    """Kills a loop; returns how many steps had been reported, and how many of those are gone."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        command = [python, HERE / "worker.py", tool, folder, 10, 0, 0, "kill"]
        process = subprocess.Popen(
            [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        first = process.stdout.readline()
        time.sleep(KILL_SECONDS)
        # Helpers that a tool started for itself may live on, as they would on a machine where the job was killed.
        process.kill()
        reported = [first, *process.stdout.read().splitlines()]
        process.wait()
        time.sleep(1)
        steps = int([line for line in reported if line.strip()][-1])
        command = [python, HERE / "survivors.py", tool, folder]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if done.returncode:
            return steps, -1
        return steps, max(0, steps - int(done.stdout.split()[-1]))


def read_back(binary: Path, python: str, folder: str | None) -> None:
    """Logs ten million points in one run and reads all of them, each time with a whole process."""
    with tempfile.TemporaryDirectory(dir=folder) as home:
        environment = {**os.environ, "TRACKWAY_HOME": home}
        subprocess.run([binary, "run", "--", python, "-c", TEN_MILLION], check=True, env=environment, stderr=subprocess.DEVNULL)
        raw = sum(path.stat().st_size for path in Path(home).glob("attempts/*/records/*"))
        kept = sum(path.stat().st_size for path in Path(home).glob("records/*.parquet"))
        print(f"10 million points of one run: {raw / 1e7:.1f} bytes a point as logged, {kept / 1e7:.1f} after compaction")
        for query in QUERIES:
            taken = []
            for _ in range(5):
                began = time.perf_counter()
                subprocess.run([binary, "sql", query], check=True, env=environment, capture_output=True)
                taken.append(time.perf_counter() - began)
            print(f"  {sorted(taken)[2]:.2f} s [{min(taken):.2f} .. {max(taken):.2f}] {query}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", required=True, metavar="TOOL=PATH")
    parser.add_argument("--rust", type=Path)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--folder", help="where the tools write; the system's temporary folder")
    options = parser.parse_args()
    pythons = dict(one.split("=", 1) for one in options.python)
    head = ["mean", "p50", "p99"]
    print(f"{os.cpu_count()} cores; microseconds a call; {options.points} points, or as many as fit into {options.seconds} s")
    print(f"  {'':<16}|{'one metric':^27}|{'ten metrics':^27}| {'durable s':>9} {'B/point':>8} {'calls':>7}  lost after SIGKILL")
    print(f"  {'':<16}|{''.join(f'{name:>9}' for name in head * 2)[:27]}|{''.join(f'{name:>9}' for name in head)}|")
    for tool, package in TOOLS.items():
        if package not in pythons:
            print(f"  {tool:<16}| not run: no --python {package}=PATH")
            continue
        one, ten = (logged(tool, pythons[package], metrics, options) for metrics in (1, 10))
        fate = "not measured"
        if tool not in NOT_READ:
            reported, gone = lost(tool, pythons[package], options)
            fate = f"{gone} of {reported} steps" if gone >= 0 else f"of {reported} steps nothing can be read"
        figures = "|".join("".join(f"{found[name] / 1e3:9.2f}" for name in head) for found in (one, ten))
        print(f"  {tool:<16}|{figures}| {ten['durable_seconds']:9.3f} {ten['bytes_a_point']:8.1f} {ten['calls']:7}  {fate}", flush=True)
    if options.rust:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            subprocess.run([options.rust, folder], check=True)
    if options.binary:
        read_back(options.binary, pythons["trackway"], options.folder)


if __name__ == "__main__":
    main()
