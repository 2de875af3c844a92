#!/usr/bin/env python3
"""Leakage between 1,000,000 training and 200,000 test rows of 20 columns: time and memory beside Polars, DuckDB and
pandas for exact duplicates, and precision and recall of every check on planted cases.

Usage: bench/data/leakage.py FOLDER --ours PATH/leakage [--rounds 5] [--train-rows 1000000] [--test-rows 200000]

FOLDER is made, if it is not there; `--ours` is `cargo build --release -p trackway-data --example leakage`. Each runs in
a separate process; they take turns. The peers are installed beside this script's Python: polars, duckdb, pandas.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

POLARS = """
import polars as pl
train, test = (pl.scan_parquet(f'{folder}/{side}.parquet') for side in ('train', 'test'))
columns = [c for c in train.collect_schema().names() if c != 'y']
print(test.join(train.select(columns), on=columns, how='semi', nulls_equal=True).select(pl.len()).collect().item())
"""
DUCKDB = """
import duckdb
columns = [r[0] for r in duckdb.sql("describe from '{folder}/train.parquet'").fetchall() if r[0] != 'y']
on = ' and '.join(f'a.{c} is not distinct from b.{c}' for c in columns)
print(duckdb.sql(f"select count(*) from '{folder}/test.parquet' a semi join '{folder}/train.parquet' b on {on}").fetchall()[0][0])
"""
PANDAS = """
import pandas as pd
train, test = (pd.read_parquet(f'{folder}/{side}.parquet').drop(columns='y') for side in ('train', 'test'))
print(len(test.merge(train.drop_duplicates(), how='inner')))
"""
NUMBERS = 15
CATEGORIES = 4


def table(rows: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    """15 columns of numbers, 4 of categories, a city of 1,000; the label depends in part on three numbers."""
    columns = {f"x{index}": random.normal(0, 1, rows) for index in range(NUMBERS)}
    for index in range(CATEGORIES):
        columns[f"c{index}"] = random.integers(0, 5 + 10 * index, rows)
    columns["city"] = np.char.add("city-", random.integers(0, 1000, rows).astype("U4"))
    reported = columns["x0"] + 0.7 * columns["x1"] - 0.5 * columns["x2"] + random.normal(0, 1, rows)
    columns["y"] = (reported > 0).astype(np.int64)
    return columns


def write(folder: Path, side: str, columns: dict[str, np.ndarray]) -> None:
    pq.write_table(pa.table(columns), folder / f"{side}.parquet", row_group_size=100_000)


def measure(command: list[str]) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak MiB of one run; a failure ends the benchmark."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        sys.exit(f"failed: {' '.join(command)[:200]}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def speed(folder: Path, ours: str, rounds: int) -> None:
    sides = [ours, str(folder / "train.parquet"), str(folder / "test.parquet"), "--label", "y"]
    python = [sys.executable, "-c"]
    commands = {
        "trackway, equal rows": [*sides, "--only", "rows"],
        "trackway, all but near": [*sides, "--only", "rows,conflicts,target,identifiers,preprocessing"],
        "trackway, near rows": [*sides, "--only", "near_duplicates"],
        "trackway, all checks": sides,
        "Polars semi join": [*python, POLARS.format(folder=folder, side="{side}")],
        "DuckDB semi join": [*python, DUCKDB.replace("{folder}", str(folder))],
        "pandas merge": [*python, PANDAS.format(folder=folder, side="{side}")],
    }
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(measure(command))
    print(f"  {'':<24} {'wall s':>8} {'cpu s':>8} {'peak MiB':>9}   median of {rounds}")
    for name, runs in taken.items():
        wall, cpu, peak = (statistics.median(column) for column in zip(*runs))
        print(f"  {name:<24} {wall:8.2f} {cpu:8.2f} {peak:9.0f}")


def answers(ours: str, folder: Path, *more: str) -> tuple[dict, dict]:
    sides = [str(folder / "train.parquet"), str(folder / "test.parquet")]
    output = subprocess.run([ours, *sides, *more], check=True, capture_output=True, text=True).stdout
    documents = [json.loads(line) for line in output.splitlines()]
    return {it["name"]: it for it in documents if "name" in it}, next((it for it in documents if "found" in it), {})


def warned(check: dict) -> list[str]:
    return [it["column"] for it in check["findings"] if it["severity"] != "note"]


def leaking(side: dict, is_train: bool, random: np.random.Generator) -> dict:
    """The side with features that leak the label: recoded, with noise, in a pair, and on the training side only."""
    rows = len(side["y"])
    y = side["y"]
    one = random.normal(0, 1, rows)
    return {
        **side,
        "recoded": np.where(y == 1, "yes", "no"),
        "noisy": np.where(random.random(rows) < 0.05, 1 - y, y) + random.normal(0, 0.05, rows),
        "one": one,
        "two": np.abs(random.normal(0, 1, rows)) * np.sign(one) * (2 * y - 1),
        "gone": np.where(random.random(rows) < (0.7 if is_train else 0.0), y, random.integers(0, 2, rows)),
    }


def planted(folder: Path, ours: str, rounds: int) -> None:
    """Precision and recall of near rows, target, groups, time, scaling and identifiers; alarms on clean columns."""
    folder.mkdir(exist_ok=True)
    found = {
        name: [0, 0, 0] for name in ("near edited", "near noisy", "target", "scaled", "identifiers", "groups", "time")
    }
    columns = alarms = 0

    def score(name: str, right: int, all_found: int, all_planted: int) -> None:
        for index, more in enumerate((right, all_found, all_planted)):
            found[name][index] += more

    for seed in range(rounds):
        random = np.random.default_rng(seed)
        train, test = table(20_000, random), table(5_000, random)
        write(folder, "train", train)
        write(folder, "test", test)
        checks, _ = answers(ours, folder, "--label", "y")
        columns += len(train) - 1
        alarms += sum(len([f for f in it["findings"] if f["severity"] != "note"]) for it in checks.values())

        for kind in ("edited", "noisy"):
            copies = {name: values.copy() for name, values in test.items()}
            picked = random.choice(20_000, 500, replace=False)
            for name, values in copies.items():
                values[:500] = train[name][picked]
            for row in range(500):
                if kind == "edited":
                    for index in random.choice(NUMBERS, 3, replace=False):
                        copies[f"x{index}"][row] = random.normal()
                else:
                    for index in range(NUMBERS):
                        copies[f"x{index}"][row] += 0.007 * random.normal()
            write(folder, "test", copies)
            _, near = answers(ours, folder, "--label", "y", "--only", "near_duplicates")
            rows = near["found"][0]["near_rows"]
            # Rows that are near without having been planted would be over 500, or in the clean run's alarms.
            score(f"near {kind}", min(rows, 500), rows, 500)

        write(folder, "train", leaking(train, True, random))
        write(folder, "test", leaking(test, False, random))
        checks, _ = answers(ours, folder, "--label", "y", "--only", "target")
        # A pair is reported by either of its columns.
        reported = {"one" if name == "two" else name for name in warned(checks["leakage.target"])}
        hidden = {"recoded", "noisy", "one", "gone"}
        score("target", len(reported & hidden), len(reported), len(hidden))

        raw = {f"s{index}": random.normal(40, 12, 25_000) for index in range(6)}
        scaled = {
            "s0": (raw["s0"] - raw["s0"].mean()) / raw["s0"].std(),
            "s1": (raw["s1"] - raw["s1"][:20_000].mean()) / raw["s1"][:20_000].std(),
            "s2": raw["s2"].argsort().argsort() / 24_999,
            "s3": raw["s3"],
            "s4": raw["s4"] / 12,
            "s5": random.random(25_000),
        }
        for side, part in (("train", slice(0, 20_000)), ("test", slice(20_000, None))):
            own = train if side == "train" else test
            ids = np.arange(25_000)[part]
            keys = {"record": ids, "token": np.array([f"{random.integers(1 << 60):016x}" for _ in ids])}
            write(
                folder,
                side,
                {
                    **own,
                    **{name: values[part] for name, values in scaled.items()},
                    **keys,
                    "user": random.integers(0, 4000, len(ids)),
                    "at": ids + (0 if side == "train" else -50),
                },
            )
        checks, _ = answers(
            ours,
            folder,
            "--label",
            "y",
            "--group-by",
            "user",
            "--time",
            "at",
            "--only",
            "preprocessing,identifiers,groups,time",
        )
        reported = set(warned(checks["leakage.preprocessing"]))
        score("scaled", len(reported & {"s0", "s2"}), len(reported), 2)
        reported = {it["column"] for it in checks["leakage.identifiers"]["findings"]}
        score("identifiers", len(reported & {"record", "token"}), len(reported), 2)
        for name in ("groups", "time"):
            hit = checks[f"leakage.{name}"]["verdict"] == "block"
            score(name, hit, hit, 1)

    print(f"\n  {'planted':<14} {'precision':>9} {'recall':>7}   over {rounds} tables of 20,000 and 5,000 rows")
    for name, (right, all_found, all_planted) in found.items():
        print(f"  {name:<14} {right / max(all_found, 1):9.3f} {right / all_planted:7.3f}")
    print(f"  clean: {alarms} alarms of all checks on {columns} columns")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--train-rows", type=int, default=1_000_000)
    parser.add_argument("--test-rows", type=int, default=200_000)
    arguments = parser.parse_args()
    folder = arguments.folder
    if not (folder / "test.parquet").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(11)
        train, test = table(arguments.train_rows, random), table(arguments.test_rows, random)
        for name in test:
            # One test row in a hundred is in the training side as well.
            test[name][::100] = train[name][::500][: len(test[name][::100])]
        write(folder, "train", train)
        write(folder, "test", test)
        # The kernel counts a child's largest memory from that of its parent: the tables must be gone from this process.
        os.execv(sys.executable, [sys.executable, *sys.argv])
    speed(folder, arguments.ours, arguments.rounds)
    planted(folder / "planted", arguments.ours, arguments.rounds)


if __name__ == "__main__":
    main()
