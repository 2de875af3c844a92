#!/usr/bin/env python3
"""Census income by logistic regression in NumPy: trained with exact resume, and judged from its checkpoints.

    income.py train --train adult-train.csv       inside `trackway run`
    income.py evaluate --test adult-test.csv      inside `trackway evaluate`: leaves predictions with the features beside them
"""

import argparse
import csv
import os
import zlib
from pathlib import Path

import numpy as np
import trackway
from trackway import checkpoint

NAMES = "age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain capital_loss hours_per_week native_country income".split()
NUMBERS = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
TEXTS = ("workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country")
BUCKETS = 512
POSITIVE = ">50K"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        fields = ([field.strip() for field in row] for row in csv.reader(file))
        table = [dict(zip(NAMES, row)) for row in fields if len(row) == len(NAMES)]
    for row in table:
        row["income"] = row["income"].rstrip(".")
    return table


def features(table: list[dict[str, str]]) -> np.ndarray:
    """Numbers on a log scale, texts in buckets of one by their hash, and a one."""
    found = np.zeros((len(table), BUCKETS + len(NUMBERS) + 1), dtype=np.float32)
    for index, row in enumerate(table):
        for name in TEXTS:
            found[index, zlib.crc32(f"{name}={row[name]}".encode()) % BUCKETS] = 1
        found[index, BUCKETS:-1] = [np.log1p(float(row[name])) / 5 for name in NUMBERS]
    found[:, -1] = 1
    return found


def probability(weights: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(inputs @ weights, -30, 30)))


def train(options: argparse.Namespace) -> None:
    run = trackway.attach()
    trackway.seed()
    table = rows(options.train)
    inputs, labels = features(table), np.array([row["income"] == POSITIVE for row in table], dtype=np.float32)
    model = {"weights": np.zeros(inputs.shape[1], dtype=np.float32)}
    start = run.resume(model=model)
    batches = [range(first, min(first + options.batch, len(table))) for first in range(0, len(table), options.batch)]
    for step, batch in run.batches(batches, start=start, epochs=options.epochs):
        predicted = probability(model["weights"], inputs[batch])
        wrong = predicted - labels[batch]
        model["weights"] -= options.lr * (inputs[batch].T @ wrong) / len(batch)
        clipped = np.clip(predicted, 1e-6, 1 - 1e-6)
        run.log(step, loss=-np.mean(labels[batch] * np.log(clipped) + (1 - labels[batch]) * np.log(1 - clipped)))
        run.checkpoint(step)
    run.finish()


def evaluate(options: argparse.Namespace) -> None:
    weights = checkpoint.given(framework="numpy")["model"]["weights"]
    table = rows(options.test)
    scores = probability(weights, features(table))
    columns = [name for name in NAMES if name != "income"]
    path = Path(os.environ["TRACKWAY_EVALUATION_OUT"]) / "predictions.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["id", "label", "prediction", "score", *columns])
        for index, (row, score) in enumerate(zip(table, scores)):
            said = POSITIVE if score >= 0.5 else "<=50K"
            out.writerow([index, row["income"], said, f"{score:.6f}", *(row[name] for name in columns)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("train", "evaluate"))
    parser.add_argument("--train", type=Path)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=0.8)
    options = parser.parse_args()
    train(options) if options.what == "train" else evaluate(options)


if __name__ == "__main__":
    main()
