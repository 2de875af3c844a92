#!/usr/bin/env python3
"""Profiles one table with Trackway, DuckDB and Polars in turn, and prints medians, ratios and peak memory.

Usage: bench/data/compare.py FOLDER --ours PATH/profile [--rounds 3]

FOLDER is what `generate.py` wrote; `--ours` is `cargo build --release -p trackway-tables --example profile`. Each runs
in a separate process; they take turns, so that whatever else the machine does meets all of them. Wall time, the
processor time of all cores (which other load disturbs less), and the largest resident memory are of that process.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

DUCKDB = "import duckdb; print(duckdb.sql(\"summarize select * from '{path}'\").fetchall()[0][0])"
POLARS = "import polars as pl; print(pl.{read}('{path}').describe(percentiles=[.01,.05,.1,.25,.5,.75,.9,.95,.99]))"


def measure(command: list[str]) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak MiB of one run; a failure ends the benchmark."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def compare(path: Path, commands: dict[str, list[str]], rounds: int) -> None:
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(measure(command))
    print(f"\n{path.name}: {path.stat().st_size / 2**20:.0f} MiB, median of {rounds}")
    print(f"  {'':<30} {'wall s':>8} {'cpu s':>8} {'peak MiB':>9} {'wall / ours':>12} {'cpu / ours':>11}")
    ours = [statistics.median(column) for column in zip(*taken["trackway profile"])]
    for name, runs in taken.items():
        wall, cpu, peak = (statistics.median(column) for column in zip(*runs))
        print(f"  {name:<30} {wall:8.2f} {cpu:8.2f} {peak:9.0f} {wall / ours[0]:11.1f}x {cpu / ours[1]:10.1f}x")
    if path.suffix == ".csv":
        for name in ("trackway read only", "trackway profile"):
            cpu = statistics.median(run[1] for run in taken[name])
            print(f"  {name}: {path.stat().st_size / 1e6 / cpu:.0f} MB/s per core")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ours", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for name, read in (("table.parquet", "read_parquet"), ("table.csv", "read_csv")):
        path = arguments.folder / name
        python = [sys.executable, "-c"]
        compare(path, {
            "trackway profile": [str(arguments.ours), str(path)],
            "trackway profile, with label": [str(arguments.ours), str(path), "--label", "label"],
            "trackway read only": [str(arguments.ours), str(path), "--read-only"],
            "DuckDB SUMMARIZE": [*python, DUCKDB.format(path=path)],
            "Polars describe": [*python, POLARS.format(path=path, read=read)],
        }, arguments.rounds)


if __name__ == "__main__":
    main()
