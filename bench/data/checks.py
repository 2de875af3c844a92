#!/usr/bin/env python3
"""Checks, drift and whole profiles: Trackway and the tools a user would pick instead, in turn, in one run.

Usage: bench/data/checks.py schema|drift|profile FOLDER --trackway BINARY [--peers FOLDER] [--rounds 3] [--limit 180]

FOLDER holds what `generate.py` wrote (`table.parquet`); `drift` writes its own two tables there the first time.
`--peers` holds one virtual environment per peer, as `bench/data/peers.sh` makes them; a peer that is not there is
named, and left out. Each run is a separate process, from the files to the result; they take turns. `loading` peers
are shown with the time to read the files into a frame, which they need.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

# Fifteen rules that every tool can express; `SCHEMA` is ours, the others follow it line by line.
SCHEMA = """version = 1
[table]
rows_min = 1
[[column]]
name = "id"
type = "int"
null_share_max = 0.0
min = 0
[[column]]
name = "age"
type = "int"
null_share_max = 0.0
min = 18
max = 90
[[column]]
name = "income"
type = "float"
null_share_max = 0.05
min = 0
[[column]]
name = "score"
type = "float"
[[column]]
name = "balance"
type = "float"
min = -1000
max = 2500
[[column]]
name = "city"
type = "text"
regex = "city-[0-9]{3}"
[[column]]
name = "plan"
type = "text"
values = ["free", "basic", "plus", "pro", "enterprise"]
[[column]]
name = "user"
type = "text"
length_max = 8
null_share_max = 0.0
[[column]]
name = "seen_at"
type = "timestamp"
null_share_max = 0.0
[[column]]
name = "constant"
type = "int"
values = [1]
[[column]]
name = "leak"
type = "float"
[[column]]
name = "label"
type = "int"
values = [0, 1]
[[rule]]
sql = "leak < label * 2 + 1"
"""

DUCKDB_SCHEMA = """
import duckdb
print(duckdb.sql(\"\"\"select count(*) filter (id is null), count(*) filter (id < 0), count(*) filter (age is null),
 count(*) filter (age not between 18 and 90), avg((income is null)::int), count(*) filter (income < 0),
 count(*) filter (balance not between -1000 and 2500), count(*) filter (not regexp_full_match(city, 'city-[0-9]{3}')),
 count(*) filter (plan not in ('free', 'basic', 'plus', 'pro', 'enterprise')), count(*) filter (length("user") > 8),
 count(*) filter ("user" is null), count(*) filter (seen_at is null), count(*) filter (constant <> 1),
 count(*) filter (label not in (0, 1)), count(*) filter (not leak < label * 2 + 1) from 'PATH'\"\"\").fetchall())
"""
PANDERA_POLARS_SCHEMA = """
import polars as pl, pandera.polars as pa
from pandera.polars import Column, Check
schema = pa.DataFrameSchema({
 "id": Column(pl.Int64, Check.ge(0)), "age": Column(pl.Int32, Check.in_range(18, 90)),
 "income": Column(pl.Float64, [Check.ge(0), Check(lambda d: d.lazyframe.select(pl.col(d.key).is_null().mean() <= 0.05))], nullable=True),
 "balance": Column(pl.Float64, Check.in_range(-1000, 2500)),
 "city": Column(pl.String, Check.str_matches("^city-[0-9]{3}$"), nullable=True),
 "plan": Column(pl.String, Check.isin(["free", "basic", "plus", "pro", "enterprise"])),
 "user": Column(pl.String, Check.str_length(max_value=8)), "seen_at": Column(pl.Datetime),
 "constant": Column(pl.Int64, Check.eq(1)), "label": Column(pl.Int64, Check.isin([0, 1]))},
 checks=Check(lambda d: d.lazyframe.select(pl.col("leak") < pl.col("label") * 2 + 1)))
print(len(schema.validate(pl.read_parquet("PATH"), lazy=True)))
"""
PANDERA_SCHEMA = """
import pandas as pd, pandera.pandas as pa
from pandera.pandas import Column, Check
schema = pa.DataFrameSchema({
 "id": Column(int, Check.ge(0)), "age": Column("int32", Check.in_range(18, 90)),
 "income": Column(float, [Check.ge(0), Check(lambda s: s.isna().mean() <= 0.05, ignore_na=False)], nullable=True),
 "balance": Column(float, Check.in_range(-1000, 2500)),
 "city": Column(str, Check.str_matches("^city-[0-9]{3}$"), nullable=True),
 "plan": Column(str, Check.isin(["free", "basic", "plus", "pro", "enterprise"])),
 "user": Column(str, Check.str_length(max_value=8)), "seen_at": Column("datetime64[us]"),
 "constant": Column(int, Check.eq(1)), "label": Column(int, Check.isin([0, 1]))},
 checks=Check(lambda d: d["leak"] < d["label"] * 2 + 1))
print(len(schema.validate(pd.read_parquet("PATH"), lazy=True)))
"""
GX_SCHEMA = """
import pandas as pd, great_expectations as gx
from great_expectations import expectations as E
batch = (gx.get_context(mode="ephemeral").data_sources.add_pandas("p").add_dataframe_asset("a")
 .add_batch_definition_whole_dataframe("b").get_batch(batch_parameters={"dataframe": (d := pd.read_parquet("PATH"))}))
d["holds"] = d["leak"] < d["label"] * 2 + 1
suite = gx.ExpectationSuite("s", expectations=[
 E.ExpectColumnValuesToNotBeNull(column="id"), E.ExpectColumnValuesToBeBetween(column="id", min_value=0),
 E.ExpectColumnValuesToNotBeNull(column="age"), E.ExpectColumnValuesToBeBetween(column="age", min_value=18, max_value=90),
 E.ExpectColumnValuesToNotBeNull(column="income", mostly=0.95), E.ExpectColumnValuesToBeBetween(column="income", min_value=0),
 E.ExpectColumnValuesToBeBetween(column="balance", min_value=-1000, max_value=2500),
 E.ExpectColumnValuesToMatchRegex(column="city", regex="^city-[0-9]{3}$"),
 E.ExpectColumnValuesToBeInSet(column="plan", value_set=["free", "basic", "plus", "pro", "enterprise"]),
 E.ExpectColumnValueLengthsToBeBetween(column="user", max_value=8), E.ExpectColumnValuesToNotBeNull(column="user"),
 E.ExpectColumnValuesToNotBeNull(column="seen_at"), E.ExpectColumnValuesToBeInSet(column="constant", value_set=[1]),
 E.ExpectColumnValuesToBeInSet(column="label", value_set=[0, 1]), E.ExpectColumnValuesToBeInSet(column="holds", value_set=[True])])
print(batch.validate(suite).success)
"""

READ_TWO = "import pandas as pd; a, b = pd.read_parquet('A'), pd.read_parquet('B')\n"
SCIPY_DRIFT = READ_TWO + "from scipy.stats import ks_2samp\nprint(sum(ks_2samp(a[c], b[c]).statistic > 0.05 for c in a))"
LOAD_ONLY = READ_TWO + "print(len(a), len(b))"
NANNYML_DRIFT = READ_TWO + """import nannyml as nml
c = nml.UnivariateDriftCalculator(column_names=list(a), continuous_methods=['kolmogorov_smirnov'], chunk_number=1).fit(a)
print(len(c.calculate(b).to_df()))"""
DEEPCHECKS_DRIFT = READ_TWO + """from deepchecks.tabular import Dataset
from deepchecks.tabular.checks import FeatureDrift
print(FeatureDrift().run(Dataset(a, cat_features=[]), Dataset(b, cat_features=[])).value.keys())"""

YDATA_PROFILE = "import pandas as pd; from ydata_profiling import ProfileReport\nprint(len(ProfileReport(pd.read_parquet('PATH'), minimal=True, progress_bar=False).to_json()))"
WHYLOGS_PROFILE = "import pandas as pd, whylogs as why\nprint(len(why.log(pandas=pd.read_parquet('PATH')).view().to_pandas()))"

PEERS = {
    "schema": {"DuckDB": ("base", DUCKDB_SCHEMA), "pandera on Polars": ("base", PANDERA_POLARS_SCHEMA),
               "pandera": ("base", PANDERA_SCHEMA), "Great Expectations": ("gx", GX_SCHEMA)},
    "drift": {"pandas, loading only": ("base", LOAD_ONLY), "SciPy ks_2samp": ("base", SCIPY_DRIFT),
              "NannyML": ("nannyml", NANNYML_DRIFT), "Deepchecks (its 10 % sample)": ("deepchecks", DEEPCHECKS_DRIFT)},
    "profile": {"ydata-profiling, minimal": ("ydata", YDATA_PROFILE), "whylogs": ("whylogs", WHYLOGS_PROFILE)},
}
WRITE_DRIFT = """
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
random = np.random.default_rng(11)
for name, shift in (("A", 0.0), ("B", 0.3)):
    table = {f"c{i:02}": random.normal(shift if i % 10 == 0 else 0.0, 1.0 + i / 50, 1_000_000) for i in range(50)}
    pq.write_table(pa.table(table), name)
"""



def measure(command: list[str], limit_seconds: float) -> tuple[float, float, float] | None:
    """Wall seconds, processor seconds and peak MiB of one run; `None` when it was not done in time."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    timer = subprocess.Popen(["sh", "-c", f"sleep {limit_seconds} && kill -9 {process.pid}"])
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    late = timer.poll() is not None
    timer.kill()
    timer.wait()
    if status and wall < limit_seconds and not late and os.waitstatus_to_exitcode(status) not in (0, 3):
        raise RuntimeError(error.decode().strip().splitlines()[-1])
    return None if wall >= limit_seconds else (wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def compare(title: str, commands: dict[str, list[str]], rounds: int, limit_seconds: float) -> None:
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
    late: set[str] = set()
    for _ in range(rounds):
        for name, command in commands.items():
            if name in late:
                continue
            try:
                run = measure(command, limit_seconds)
            except RuntimeError as error:
                print(f"  {name}: failed: {error}")
                run = None
            if run:
                taken[name].append(run)
            else:
                late.add(name)
    print(f"\n{title}, median of {rounds}")
    print(f"  {'':<30} {'wall s':>8} {'cpu s':>8} {'peak MiB':>9} {'wall / ours':>12}")
    ours = statistics.median(run[0] for run in next(iter(taken.values())))
    for name, runs in taken.items():
        if name in late:
            print(f"  {name:<30} not done, in {limit_seconds:.0f} s or at all")
            continue
        wall, cpu, peak = (statistics.median(column) for column in zip(*runs))
        print(f"  {name:<30} {wall:8.2f} {cpu:8.2f} {peak:9.0f} {wall / ours:11.1f}x")


def peers_of(what: str, folder: Path, paths: dict[str, str]) -> dict[str, list[str]]:
    commands = {}
    for name, (environment, script) in PEERS[what].items():
        python = folder / environment / "bin" / "python"
        if not python.exists():
            print(f"left out: {name} (no {python})")
            continue
        for key, path in paths.items():
            script = script.replace(f"'{key}'", f"'{path}'").replace(f'"{key}"', f'"{path}"')
        commands[name] = [str(python), "-c", script]
    return commands


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["schema", "drift", "profile"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trackway", required=True)
    parser.add_argument("--peers", type=Path, default=Path("target/peers"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=180.0)
    arguments = parser.parse_args()
    folder, ours = arguments.folder, [arguments.trackway, "data"]
    base = str(arguments.peers / "base" / "bin" / "python")
    table = folder / "table.parquet"
    if arguments.what == "schema":
        (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
        commands = {"trackway data validate": [*ours, "validate", str(table), "--schema", str(folder / "schema.toml")]}
        paths = {"PATH": str(table)}
    elif arguments.what == "drift":
        one, other = folder / "reference.parquet", folder / "current.parquet"
        if not other.exists():
            subprocess.run([base, "-c", WRITE_DRIFT.replace('"A"', f'"{one}"').replace('"B"', f'"{other}"')], check=True)
        for path in (one, other):
            subprocess.run([*ours, "profile", str(path), "--out", f"{path}.json"], check=True, stdout=subprocess.DEVNULL)
        sides = ["--reference", str(one), "--current", str(other)]
        kept = ["--reference", f"{one}.json", "--current", f"{other}.json"]
        commands = {"trackway data drift": [*ours, "drift", *sides], "  from kept profiles": [*ours, "drift", *kept]}
        paths = {"A": str(one), "B": str(other)}
    else:
        million = folder / "million.parquet"
        if not million.exists():
            subprocess.run([base, "-c", "import pyarrow.parquet as pq, sys; p = pq.ParquetFile(sys.argv[1]); "
                            "pq.write_table(p.read_row_group(0).slice(0, 1_000_000), sys.argv[2])", str(table), str(million)], check=True)
        commands = {"trackway data profile": [*ours, "profile", str(million), "--label", "label"]}
        paths = {"PATH": str(million)}
    commands |= peers_of(arguments.what, arguments.peers, paths)
    compare(arguments.what, commands, arguments.rounds, arguments.limit)


if __name__ == "__main__":
    main()
