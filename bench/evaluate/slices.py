#!/usr/bin/env python3
"""Blind-spot search beside PyPI's `sliceline`: the same slices, time and peak memory.

Usage: bench/evaluate/slices.py FOLDER --trackway PATH --adult adult-train.csv [--rounds 3] [--only NAMES] [--peer-seconds 900] [--peer-gib 18]

FOLDER is made, if it is not there; `--trackway` is the release binary. Beside this script's Python: sliceline, scikit-learn, pandas, pyarrow (`bench/data/peers.sh` makes one). Tables:

- `adult`: its numbers in 10 quantile bins, 0/1 errors of a logistic regression out of fold; `adult_10`: ten copies;
- `covtype`: 581,012 rows of 54 columns, 188 one-hot columns, as large as Covtype; synthetic, with a planted slice;
- `amounts`: adult with squared errors of the probability;
- `wide`: 60 rows with more one-hot columns than rows, where the peer's bound (it takes columns for rows) loses slices.

k = 4, at most 3 predicates, alpha 0.95, support n/100 (`wide`: 2). Each runs in a separate process, ours and the peer's in
turn; a peer that needs more than `--peer-gib` or `--peer-seconds` is stopped, which is printed. Every slice of both answers is
counted again with NumPy, which also says whose scores are higher.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

PEER = """
import json, sys, time
import pandas as pd
from sliceline.slicefinder import Slicefinder
path, k, level, alpha, support = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
table = pd.read_parquet(path)
errors = table.pop('error').to_numpy()
began = time.perf_counter()
finder = Slicefinder(alpha=alpha, k=k, max_l=level, min_sup=support, verbose=False).fit(table.to_numpy(), errors)
seconds = time.perf_counter() - began
slices = [{name: value for name, value in zip(table.columns, one) if value is not None} for one in finder.top_slices_]
print(json.dumps({'slices': slices, 'seconds': seconds}))
"""
LEVEL, TOP, ALPHA = 3, 4, 0.95


def adult(path: Path, folder: Path) -> None:
    """Adult with its numbers in bins, and the errors of a logistic regression."""
    import numpy as np
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    names = "age workclass fnlwgt education education_num marital occupation relationship race sex gain loss hours country income"
    table = pd.read_csv(path, names=names.split(), header=None, skipinitialspace=True, comment="|")
    table = table[pd.to_numeric(table["age"], errors="coerce").notna()].astype({"age": int})
    wrong = table.pop("income").str.startswith(">50K").astype(int).to_numpy()
    numbers = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    others = [name for name in table if name not in numbers]
    model = make_pipeline(
        make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), others)),
        LogisticRegression(max_iter=1000),
    )
    probability = cross_val_predict(model, table, wrong, cv=5, method="predict_proba")[:, 1]
    for name in numbers:
        table[name] = pd.qcut(table[name], 10, duplicates="drop").astype(str)
    table = table.astype(str)
    zero_one = ((probability > 0.5).astype(int) != wrong).astype(float)
    table.assign(error=zero_one).to_parquet(folder / "adult.parquet")
    pd.concat([table.assign(error=zero_one)] * 10, ignore_index=True).to_parquet(folder / "adult_10.parquet")
    table.assign(error=np.square(probability - wrong)).to_parquet(folder / "amounts.parquet")


def covtype(folder: Path) -> None:
    """10 columns of 8 values and 44 of two, as Covtype has them in one-hot columns; nearly one-hot groups of rare ones."""
    import numpy as np
    import pandas as pd

    random = np.random.default_rng(7)
    rows = 581_012
    columns = {f"n{index}": random.integers(0, 10, rows) for index in range(10)}
    for size, name in ((4, "wild"), (40, "soil")):
        kind = random.choice(size, rows, p=random.dirichlet(np.full(size, 0.8)))
        columns |= {f"{name}{index}": (kind == index).astype(int) for index in range(size)}
    probability = np.full(rows, 0.15)
    common = max((name for name in columns if name[0] in "ws"), key=lambda name: columns[name].sum())
    probability[(columns["n1"] == 3) & (columns[common] == 1)] = 0.45
    probability += 0.05 * columns["soil3"]
    columns["error"] = (random.random(rows) < probability).astype(float)
    pd.DataFrame({name: values if name == "error" else values.astype(str) for name, values in columns.items()}).to_parquet(
        folder / "covtype.parquet"
    )


def wide(folder: Path) -> None:
    import numpy as np
    import pandas as pd

    random = np.random.default_rng(0)
    columns = {f"f{index}": random.integers(0, 10, 60).astype(str) for index in range(30)}
    columns["error"] = random.exponential(1, 60)
    pd.DataFrame(columns).to_parquet(folder / "wide.parquet")


def measure(command: list[str], seconds: float, gib: float) -> tuple[float, float, str, str]:
    """Wall seconds, peak MiB, stdout and why it did not end."""
    limit = int(gib * 2**30)

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=bound)
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return time.perf_counter() - began, float("nan"), "", f"stopped after {seconds:.0f} s"
    wall = time.perf_counter() - began
    reported = [line for line in errors.splitlines() if line.strip() and not line.startswith("peak_kib")]
    why = "" if process.returncode == 0 else f"failed: {(reported or ['killed'])[-1][:90]}"
    return wall, peak_mib(errors), output, why


def peak_mib(errors: str) -> float:
    lines = [line for line in errors.splitlines() if line.startswith("peak_kib")]
    return int(lines[-1].split()[1]) / 1024 if lines else float("nan")


def timed(command: list[str]) -> list[str]:
    """The command, with its peak memory on stderr."""
    tell = (
        "import os, resource, subprocess, sys; code = subprocess.call(sys.argv[1:]);"
        "print('peak_kib', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(code)"
    )
    return [sys.executable, "-S", "-c", tell, *command]


def scores(path: Path, slices: list[dict[str, str]]) -> list[float]:
    """Straight from the definition."""
    import pandas as pd

    table = pd.read_parquet(path)
    errors = table.pop("error")
    found = []
    for slice_ in slices:
        inside = pd.Series(True, index=table.index)
        for name, value in slice_.items():
            inside &= table[name].isna() if value is None else table[name] == value
        found.append(ALPHA * (errors[inside].mean() / errors.mean() - 1) - (1 - ALPHA) * (len(table) / inside.sum() - 1))
    return sorted(found, reverse=True)


def compare(path: Path, arguments: argparse.Namespace) -> None:
    import pyarrow.parquet as pq

    rows = pq.read_metadata(path).num_rows
    support = 2 if path.stem == "wide" else -(-rows // 100)
    ours = [arguments.trackway, "eval", "slices", str(path), "--json", "--no-holdout", "--error", "error", "--top", str(TOP), "--max-level", str(LEVEL)]
    ours += ["--alpha", str(ALPHA), "--support-min", str(support)]
    peer = [sys.executable, "-c", PEER, str(path), str(TOP), str(LEVEL), str(ALPHA), str(support)]
    print(f"\n{path.stem}: {rows} rows, support {support}")
    figures = {}
    for name, command in (("trackway", ours), ("sliceline", peer)):
        walls, peaks, answer, why = [], [], None, ""
        for _ in range(arguments.rounds if name == "trackway" else min(arguments.rounds, arguments.peer_rounds)):
            wall, peak, output, why = measure(timed(command), arguments.peer_seconds, arguments.peer_gib)
            if why:
                break
            walls.append(wall)
            peaks.append(peak)
            answer = json.loads(output)
        if why:
            print(f"  {name:<10} {why} (at {wall:.1f} s; limit {arguments.peer_gib} GiB)")
            continue
        own = "" if name == "trackway" else f", search alone {answer['seconds']:.2f} s"
        figures[name] = (statistics.median(walls), statistics.median(peaks))
        alone = answer.get("seconds", 0.0)
        print(f"  {name:<10} {figures[name][0]:8.3f} s {figures[name][1]:8.0f} MiB   median of {len(walls)}{own}")
        slices = [it["predicate"] for it in answer["slices"]] if name == "trackway" else answer["slices"]
        if name == "trackway":
            print(f"  {'':<10} {answer['evaluated']} slices counted, {answer['pruned']} left out")
        print(f"  {'':<10} scores {', '.join(f'{it:.6f}' for it in scores(path, slices))}")
    if len(figures) == 2:
        (wall, peak), (peer_wall, peer_peak) = figures["trackway"], figures["sliceline"]
        print(
            f"  {'':<10} {peer_wall / wall:.0f} × faster ({alone / wall:.0f} × of the peer's search alone to all of ours), "
            f"1/{peer_peak / peak:.0f} of the memory"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trackway", required=True)
    parser.add_argument("--adult", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-rounds", type=int, default=1)
    parser.add_argument("--peer-seconds", type=float, default=900)
    parser.add_argument("--peer-gib", type=float, default=18)
    parser.add_argument("--only", default="adult,amounts,adult_10,covtype,wide")
    arguments = parser.parse_args()
    folder = arguments.folder
    if not (folder / "wide.parquet").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        adult(arguments.adult, folder)
        covtype(folder)
        wide(folder)
    for name in arguments.only.split(","):
        compare(folder / f"{name}.parquet", arguments)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))
    main()
