#!/usr/bin/env python3
"""Metrics with intervals from 1,000 draws of rows, and fairness with intervals: Trackway and the tools a user would pick
instead, in one run.

Usage: bench/evaluate/metrics.py FOLDER --command 'target/release/trackway eval metrics --json' [--rows 1000000]

Needs scikit-learn, NumPy, pandas, pyarrow and fairlearn. The table is written to FOLDER the first time. Our time is of a whole
process, from the Parquet file to the answer. The peers' is without reading and without starting Python, of `--peer-resamples`
draws (3), times what is missing to 1,000: each draw costs the same. The peers get every metric that we compute of such a
table and that they have; expected calibration error is NumPy.
"""

import argparse
import json
import shlex
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
import sklearn.metrics as sk

RESAMPLES = 1_000


def write_table(path: Path, rows: int) -> None:
    rng = np.random.default_rng(17)
    group = rng.choice(["a", "b", "c", "d", "e"], rows, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    label = (rng.random(rows) < np.where(group == "a", 0.3, 0.2)).astype(int)
    score = 1 / (1 + np.exp(-(1.8 * label - 1.4 + rng.normal(0, 1.1, rows))))
    prediction = (score >= 0.5).astype(int)
    pd.DataFrame({"label": label, "prediction": prediction, "score": score, "group": group}).to_parquet(path)


def calibration_error(score: np.ndarray, label: np.ndarray, bins: int = 15) -> float:
    place = np.clip(np.ceil(score * bins).astype(int), 1, bins) - 1
    return np.abs(np.bincount(place, score - label, bins)).sum() / len(score)


def all_metrics(label: np.ndarray, prediction: np.ndarray, score: np.ndarray) -> list[float]:
    precision, recall, _ = sk.precision_recall_curve(label, score)
    return [
        sk.accuracy_score(label, prediction),
        sk.balanced_accuracy_score(label, prediction),
        *sk.precision_recall_fscore_support(label, prediction, average="binary")[:3],
        sk.recall_score(label, prediction, pos_label=0),
        sk.roc_auc_score(label, score),
        sk.average_precision_score(label, score),
        precision[recall >= 0.9].max(),
        sk.log_loss(label, score),
        sk.brier_score_loss(label, score),
        calibration_error(score, label),
    ]


def peer_metrics(table: pd.DataFrame, resamples: int) -> float:
    """Seconds for one draw."""
    label, prediction, score = (table[name].to_numpy() for name in ("label", "prediction", "score"))
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    for _ in range(resamples):
        drawn = rng.integers(0, len(label), len(label))
        all_metrics(label[drawn], prediction[drawn], score[drawn])
    return (time.perf_counter() - start) / resamples


def peer_fairness(table: pd.DataFrame, resamples: int) -> tuple[float, float]:
    """Seconds for the values, and for one draw."""
    import fairlearn.metrics as fair

    metrics = {
        "accuracy": sk.accuracy_score, "selection_rate": fair.selection_rate,
        "true_positive_rate": fair.true_positive_rate, "false_positive_rate": fair.false_positive_rate,
    }
    given = {"metrics": metrics, "y_true": table["label"], "y_pred": table["prediction"], "sensitive_features": table["group"]}

    def seconds(**more) -> float:
        start = time.perf_counter()
        frame = fair.MetricFrame(**given, **more)
        frame.difference(method="between_groups")
        return time.perf_counter() - start

    alone = seconds()
    drawn = seconds(n_boot=resamples, ci_quantiles=[0.025, 0.975], random_state=1)
    return alone, (drawn - alone) / resamples


def ours(command: list[str], rounds: int) -> float:
    """Median seconds of a whole process."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def agree(command: list[str], table: pd.DataFrame) -> None:
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["metrics"]
    label, prediction, score = (table[name].to_numpy() for name in ("label", "prediction", "score"))
    for name, value in {
        "accuracy": sk.accuracy_score(label, prediction), "roc_auc": sk.roc_auc_score(label, score),
        "average_precision": sk.average_precision_score(label, score), "log_loss": sk.log_loss(label, score),
        "ece": calibration_error(score, label),
    }.items():
        assert abs(found[name]["value"] - value) < 1e-9, (name, found[name], value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--command", required=True)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-resamples", type=int, default=3)
    arguments = parser.parse_args()
    path = arguments.folder / f"predictions-{arguments.rows}.parquet"
    if not path.exists():
        arguments.folder.mkdir(parents=True, exist_ok=True)
        write_table(path, arguments.rows)
    table = pd.read_parquet(path)
    command = [*shlex.split(arguments.command), str(path), "--resamples", str(RESAMPLES)]
    agree(command, table)
    print(f"{arguments.rows} rows, {RESAMPLES} draws, scikit-learn {sklearn.__version__}, NumPy {np.__version__}")

    formulas, draws = ours(command, arguments.rounds), ours([*command, "--always-resample"], arguments.rounds)
    one = peer_metrics(table, arguments.peer_resamples)
    peer = one * RESAMPLES
    print(f"  metrics, formulas where there are any   {formulas:9.2f} s  {peer / formulas:8.0f} x")
    print(f"  metrics, every interval from draws      {draws:9.2f} s  {peer / draws:8.0f} x")
    print(f"  scikit-learn and NumPy                  {peer:9.0f} s  ({one:.2f} s for each of {arguments.peer_resamples} draws, extrapolated)")

    judged = ours([*command, "--fairness", "group"], arguments.rounds)
    alone, one = peer_fairness(table, arguments.peer_resamples)
    peer = alone + one * RESAMPLES
    print(f"  metrics and fairness                    {judged:9.2f} s  {peer / judged:8.0f} x")
    print(f"  Fairlearn's MetricFrame                 {peer:9.0f} s  ({one:.2f} s for each of {arguments.peer_resamples} draws, extrapolated)")


if __name__ == "__main__":
    main()
