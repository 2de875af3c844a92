#!/usr/bin/env python3
"""Streams a CSV through a linear classifier, chunk by chunk, and prints one JSON line per chunk.

An ordinary training script without Trackway's SDK. Each chunk is scored before it is learned from, so that
`loss` and `accuracy` are about rows the model has not seen yet.
"""

import argparse
import csv
import json
import math
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.preprocessing import StandardScaler

MISSING = {"", "?"}
CLASS_COUNT_MAX = 100
HASH_BUCKETS = 1 << 12

Row = tuple[int, list[str]]


class TableError(ValueError):
    """The table cannot be used; the message names the file, line and column."""


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=Path, required=True, help="CSV to learn from")
    parser.add_argument("--test", type=Path, help="CSV to score at the end, same columns")
    parser.add_argument("--label", default="-1", help="label column: a name (needs --header) or an index from 0; -1 is the last")
    parser.add_argument("--header", action="store_true", help="the first line holds the column names")
    parser.add_argument("--chunk", type=int, default=1000, help="rows per step")
    parser.add_argument("--epochs", type=int, default=1, help="passes over the training table")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--step-millis", type=int, default=0, help="sleep after each step, to watch it")
    options = parser.parse_args(arguments)
    if options.chunk < 1 or options.epochs < 1:
        parser.error("--chunk and --epochs must be at least 1")
    return options


class Table:
    """A CSV read row by row, so that it may be larger than memory."""

    def __init__(self, path: Path, header: bool, label: str):
        self.path, self.header = path, header
        names = self._first_row()
        self.width = len(names)
        self.label = self._label_index(label, names)

    def _first_row(self) -> list[str]:
        for _, row in self._raw():
            return row
        raise TableError(f"{self.path} has no rows")

    def _label_index(self, label: str, names: list[str]) -> int:
        if self.header and label in names:
            return names.index(label)
        try:
            return range(self.width)[int(label)]
        except (ValueError, IndexError):
            known = ", ".join(names) if self.header else f"indexes 0 to {self.width - 1}"
            raise TableError(f"{self.path} has no column `{label}`: it has {known}") from None

    def _raw(self) -> Iterator[Row]:
        with self.path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file, skipinitialspace=True)
            for fields in reader:
                if fields:
                    yield reader.line_num, [field.strip() for field in fields]

    def rows(self) -> Iterator[Row]:
        """Line number and fields of every row with a label; the label without the full stop that some files add."""
        rows = self._raw()
        if self.header:
            next(rows, None)
        for line, fields in rows:
            if len(fields) != self.width:
                raise TableError(f"{self.path} line {line}: {len(fields)} fields, expected {self.width}")
            fields[self.label] = fields[self.label].removesuffix(".")
            if fields[self.label] not in MISSING:
                yield line, fields

    def classes(self) -> list[str]:
        """The distinct labels, sorted; a linear classifier needs them before its first step."""
        found: set[str] = set()
        for _, fields in self.rows():
            found.add(fields[self.label])
            if len(found) > CLASS_COUNT_MAX:
                raise TableError(f"{self.path}: column {self.label} has over {CLASS_COUNT_MAX} values; is it the label?")
        if len(found) < 2:
            raise TableError(f"{self.path}: column {self.label} has {len(found)} distinct labels, at least 2 are needed")
        return sorted(found)


def chunks(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


class Encoder:
    """Numbers are standardised with what was seen so far; everything else is hashed as `column=value`."""

    def __init__(self, table: Table, first: list[Row]):
        columns = [column for column in range(table.width) if column != table.label]
        self.numeric = [column for column in columns if self._looks_numeric(column, first)]
        self.categorical = [column for column in columns if column not in self.numeric]
        self.hasher = FeatureHasher(n_features=HASH_BUCKETS, input_type="string")
        self.scaler = StandardScaler()

    @staticmethod
    def _looks_numeric(column: int, rows: list[Row]) -> bool:
        values = [fields[column] for _, fields in rows if fields[column] not in MISSING]
        return bool(values) and all(map(is_number, values))

    def _numbers(self, table: Table, rows: list[Row]) -> np.ndarray:
        numbers = np.empty((len(rows), len(self.numeric)))
        for index, (line, fields) in enumerate(rows):
            for place, column in enumerate(self.numeric):
                text = fields[column]
                if text in MISSING:
                    numbers[index, place] = np.nan
                elif is_number(text):
                    numbers[index, place] = float(text)
                else:
                    raise TableError(f"{table.path} line {line}: column {column} is numeric, but holds `{text}`")
        return numbers

    def encode(self, table: Table, rows: list[Row], learn: bool) -> sparse.csr_matrix:
        numbers = self._numbers(table, rows)
        if learn and self.numeric:
            self.scaler.partial_fit(numbers)
        if self.numeric:
            # The scaler passes by NaN; afterwards 0 is the mean.
            numbers = np.nan_to_num(self.scaler.transform(numbers))
        words = [[f"{column}={fields[column]}" for column in self.categorical] for _, fields in rows]
        hashed = self.hasher.transform(words)
        return sparse.hstack([sparse.csr_matrix(numbers), hashed], format="csr")


def score(model: SGDClassifier, features: sparse.csr_matrix, labels: list[str]) -> dict[str, float]:
    probabilities = model.predict_proba(features)
    answers = model.classes_[probabilities.argmax(axis=1)]
    return {
        "loss": round(float(log_loss(labels, probabilities, labels=model.classes_)), 6),
        "accuracy": round(float(accuracy_score(labels, answers)), 6),
    }


def report(line: dict[str, float]) -> None:
    print(json.dumps(line), flush=True)


def train(options: argparse.Namespace) -> None:
    table = Table(options.train, options.header, options.label)
    test = Table(options.test, options.header, options.label) if options.test else None
    classes = table.classes()
    model = SGDClassifier(loss="log_loss", alpha=1e-5, learning_rate="invscaling", eta0=0.05, random_state=options.seed)
    encoder = None
    step = 0
    for epoch in range(options.epochs):
        for rows in chunks(table.rows(), options.chunk):
            encoder = encoder or Encoder(table, rows)
            labels = [fields[table.label] for _, fields in rows]
            features = encoder.encode(table, rows, learn=epoch == 0)
            scores = score(model, features, labels) if step else {}
            model.partial_fit(features, labels, classes=classes)
            step += 1
            report({"step": step, **(scores or score(model, features, labels)), "epoch": epoch})
            time.sleep(options.step_millis / 1000)
    if test is not None:
        report({"step": step, **evaluate(model, encoder, test, options.chunk)})


def evaluate(model: SGDClassifier, encoder: Encoder, test: Table, chunk: int) -> dict[str, float]:
    """Loss and accuracy over the whole test table, weighted by the size of the chunks."""
    count, sums = 0, {"loss": 0.0, "accuracy": 0.0}
    for rows in chunks(test.rows(), chunk):
        labels = [fields[test.label] for _, fields in rows]
        unknown = set(labels) - set(model.classes_)
        if unknown:
            raise TableError(f"{test.path}: labels {sorted(unknown)} do not occur in training")
        for name, value in score(model, encoder.encode(test, rows, learn=False), labels).items():
            sums[name] += value * len(rows)
        count += len(rows)
    if count == 0:
        raise TableError(f"{test.path} has no rows with a label")
    return {f"val_{name}": round(value / count, 6) for name, value in sums.items()}


if __name__ == "__main__":
    train(parse_arguments(sys.argv[1:]))
