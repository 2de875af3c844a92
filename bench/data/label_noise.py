#!/usr/bin/env python3
"""Plants wrong labels and compares which tool finds them: Trackway's built-in check and cleanlab.

Usage: bench/data/label_noise.py --ours PATH/label_noise [--adult FILE] [--rows 100000] [--rounds 1] [--alone]

`--ours` is `cargo build --release -p trackway-data --example label_noise`; `--adult` is `adult-train.csv` as published
(UCI). cleanlab (PyPI) gets out-of-fold probabilities of scikit-learn models, five folds, as in its guide. Each table
is checked by all of them in turn. Precision and recall are against the rows that were planted; on clean tables the
fraction of rows called wrong is printed.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from cleanlab.filter import find_label_issues
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

ADULT = ("age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,capital_gain,"
         "capital_loss,hours_per_week,native_country,label").split(",")


def table(rows: int, classes: int, overlap: float, random: np.random.Generator) -> pd.DataFrame:
    """Eight numbers and two categories; a class is where a bent function of them is largest, blurred by `overlap`."""
    numbers = random.normal(size=(rows, 8))
    city = random.integers(0, 12, rows)
    plan = random.integers(0, 4, rows)
    weights = random.normal(size=(8, classes))
    scores = numbers @ weights + 0.8 * numbers[:, :1] * numbers[:, 1:2] * random.normal(size=classes)
    scores += random.normal(size=(12, classes))[city] + random.normal(size=(4, classes))[plan]
    scores += overlap * random.gumbel(size=scores.shape)
    frame = pd.DataFrame({f"n{index}": numbers[:, index].round(5) for index in range(8)})
    frame["city"] = np.char.add("city ", city.astype(str))
    frame["plan"] = np.char.add("plan ", plan.astype(str))
    frame["label"] = np.char.add("class ", scores.argmax(axis=1).astype(str))
    return frame


def flip(frame: pd.DataFrame, share: float, random: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Gives a fraction of the rows another class, each of the others as likely."""
    names = np.array(sorted(frame["label"].unique()))
    codes = np.searchsorted(names, frame["label"])
    chosen = random.random(len(frame)) < share
    codes[chosen] = (codes[chosen] + random.integers(1, len(names), chosen.sum())) % len(names)
    return frame.assign(label=names[codes]), chosen


def cleanlab(model, frame: pd.DataFrame) -> np.ndarray:
    features, labels = frame.drop(columns="label"), frame["label"].astype("category").cat.codes.to_numpy()
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    probabilities = cross_val_predict(model, features, labels, cv=folds, method="predict_proba")
    return find_label_issues(labels, probabilities)


def boosting(frame: pd.DataFrame):
    frame = frame.copy()
    texts = [name for name in frame.columns if name != "label" and not pd.api.types.is_numeric_dtype(frame[name])]
    for name in texts:
        frame[name] = frame[name].astype("category")
    return cleanlab(HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0), frame)


def logistic(frame: pd.DataFrame):
    texts = [name for name in frame.columns if name != "label" and not pd.api.types.is_numeric_dtype(frame[name])]
    numbers = [name for name in frame.columns if name not in texts and name != "label"]
    scale = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), texts), (StandardScaler(), numbers))
    return cleanlab(make_pipeline(scale, LogisticRegression(max_iter=1000)), frame)


def ours(program: str, frame: pd.DataFrame) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        frame.to_parquet(path)
        answer = json.loads(subprocess.run([program, str(path), "label"], check=True, capture_output=True).stdout)
    found = np.zeros(len(frame), dtype=bool)
    noise = answer["noise"]
    if noise is not None:
        assert noise["suspect_count"] == len(noise["suspects"]), "more suspects than are listed"
        found[[suspect["row"] - 1 for suspect in noise["suspects"]]] = True
    return found


def compare(name: str, frame: pd.DataFrame, planted: np.ndarray, program: str, rounds: int, alone: bool) -> None:
    print(f"\n{name}: {len(frame)} rows, {planted.sum()} planted", flush=True)
    finders = {"trackway": lambda: ours(program, frame)}
    if not alone:
        finders["cleanlab, HistGradientBoosting"] = lambda: boosting(frame)
        finders["cleanlab, LogisticRegression"] = lambda: logistic(frame)
    taken: dict[str, list[float]] = {finder: [] for finder in finders}
    for _ in range(rounds):
        for finder, find in finders.items():
            start = time.perf_counter()
            found = find()
            taken[finder].append(time.perf_counter() - start)
            if len(taken[finder]) > 1:
                continue
            right = (found & planted).sum()
            quality = f"called wrong {found.mean():7.3%}"
            if planted.any():
                quality += f"  precision {right / max(found.sum(), 1):.3f}  recall {right / planted.sum():.3f}"
            print(f"  {finder:<32} {quality}", flush=True)
    print("  seconds: " + ", ".join(f"{finder} {statistics.median(times):.1f}" for finder, times in taken.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", required=True)
    parser.add_argument("--adult", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="without cleanlab, whose boosting takes minutes a table")
    arguments = parser.parse_args()
    random = np.random.default_rng(7)
    for classes, overlap in ((2, 0.0), (2, 0.5), (5, 0.2)):
        clean = table(arguments.rows, classes, overlap, random)
        noisy, planted = flip(clean, 0.03, random)
        name = f"{classes} classes, overlap {overlap}"
        compare(f"{name}, 3 % flipped", noisy, planted, arguments.ours, arguments.rounds, arguments.alone)
        compare(f"{name}, clean", clean, np.zeros(len(clean), dtype=bool), arguments.ours, arguments.rounds, arguments.alone)
    if arguments.adult:
        adult = pd.read_csv(arguments.adult, names=ADULT, skipinitialspace=True)
        noisy, planted = flip(adult, 0.03, random)
        compare("Adult, 3 % flipped", noisy, planted, arguments.ours, arguments.rounds, arguments.alone)
        compare("Adult as published", adult, np.zeros(len(adult), dtype=bool), arguments.ours, arguments.rounds, arguments.alone)


if __name__ == "__main__":
    main()
