#!/usr/bin/env python3
"""Census income by logistic regression in NumPy: trained with exact resume, and evaluated from its checkpoints.

    income.py train --train adult-train.csv       inside `trackway run`
    income.py score                               a scoring command: inside `trackway eval run` it returns probabilities for rows
"""

import argparse
import csv
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
        return [dict(zip(NAMES, row)) for row in fields if len(row) == len(NAMES)]


def features(table: list[dict[str, str]]) -> np.ndarray:
    """Numbers on a log scale, strings one-hot in buckets by their hash, and a one."""
    found = np.zeros((len(table), BUCKETS + len(NUMBERS) + 1), dtype=np.float32)
    for index, row in enumerate(table):
        for name in TEXTS:
            # The file has `?` where Trackway has a missing value.
            found[index, zlib.crc32(f"{name}={row[name] or '?'}".encode()) % BUCKETS] = 1
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


def score() -> None:
    weights = checkpoint.given(framework="numpy")["model"]["weights"]

    def chances(batch) -> np.ndarray:
        columns = batch.to_dict("list") if hasattr(batch, "to_dict") else batch
        return probability(weights, features([dict(zip(columns, row)) for row in zip(*columns.values())]))

    trackway.serve_scores(chances)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("train", "score"))
    parser.add_argument("--train", type=Path)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=0.8)
    options = parser.parse_args()
    train(options) if options.what == "train" else score()


if __name__ == "__main__":
    main()
