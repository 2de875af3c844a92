#!/usr/bin/env python3
"""Writes the table that the data benchmarks read: 12 columns of usual kinds, with faults planted at known places.

Usage: bench/data/generate.py FOLDER [--rows 10000000] [--csv-rows 1000000]

Writes `table.parquet`, the first rows again as `table.csv`, and `planted.json` with what was planted:
nulls, NaN, infinities, a sentinel, a constant column, a column that leaks the label, and an
identifier. The same arguments give the same bytes.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

CITIES = [f"city-{number:03d}" for number in range(250)]
PLANS = ["free", "basic", "plus", "pro", "enterprise"]
CHUNK_ROWS = 1_000_000


def chunk(first: int, rows: int, random: np.random.Generator) -> pa.Table:
    """Rows `first` to `first + rows`."""
    ids = np.arange(first, first + rows, dtype=np.int64)
    age = random.integers(18, 91, rows)
    income = np.round(random.lognormal(10.5, 0.6, rows), 2)
    score = random.normal(0.0, 1.0, rows)
    score[random.random(rows) < 1e-4] = np.nan
    score[random.random(rows) < 1e-5] = np.inf
    balance = random.normal(500.0, 200.0, rows)
    balance[random.random(rows) < 0.002] = -999.0
    label = random.random(rows) < 1.0 / (1.0 + np.exp(-(score.clip(-4, 4) + (age - 50) / 20.0)))
    label = np.where(np.isnan(score), False, label)
    seconds = 1_700_000_000 + first + np.arange(rows)
    user = random.integers(0, 2_000_000, rows)
    return pa.table({
        "id": ids,
        "age": pa.array(age, pa.int32()),
        "income": pa.array(income, mask=random.random(rows) < 0.03),
        "score": score,
        "balance": balance,
        "city": pa.DictionaryArray.from_arrays(
            pa.array(random.zipf(1.4, rows).clip(1, 250) - 1, pa.int32(), mask=random.random(rows) < 0.01), CITIES
        ).cast(pa.string()),
        "plan": pa.DictionaryArray.from_arrays(
            pa.array(random.choice(5, rows, p=[0.5, 0.25, 0.15, 0.08, 0.02]), pa.int32()), PLANS
        ).cast(pa.string()),
        "user": pa.array(np.char.add("u", user.astype("U8")), pa.string()),
        "seen_at": pa.array(seconds * 1_000_000, pa.timestamp("us")),
        "constant": pa.array(np.ones(rows, dtype=np.int64)),
        "leak": label * 2.0 + random.normal(0.0, 0.05, rows),
        "label": label.astype(np.int64),
    })


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--csv-rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    writer = None
    for first in range(0, arguments.rows, CHUNK_ROWS):
        table = chunk(first, min(CHUNK_ROWS, arguments.rows - first), random)
        writer = writer or pq.ParquetWriter(arguments.folder / "table.parquet", table.schema)
        writer.write_table(table)
        if first == 0:
            pacsv.write_csv(table.slice(0, arguments.csv_rows), arguments.folder / "table.csv")
    writer.close()
    planted = {"rows": arguments.rows, "sentinel": {"balance": -999.0}, "constant": "constant", "leak": "leak",
               "identifier": "id", "nulls": {"income": 0.03, "city": 0.01}, "nan": {"score": 1e-4}}
    (arguments.folder / "planted.json").write_text(json.dumps(planted, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
