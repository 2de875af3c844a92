"""A model as a scoring command: rows in on standard input, a prediction a line out (docs/scoring.md)."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TextIO

from .errors import InputError

__all__ = ["serve_scores"]

_COLUMNS_VARIABLE = "TRACKWAY_SCORING_COLUMNS"
_MESSAGE_LETTERS_MAX = 500


def serve_scores(model: Any, *, rows: TextIO | None = None, answers: TextIO | None = None) -> None:
    """Answers batches of rows until the input ends.

    `model` is a function of a batch, or a fitted model: with `predict_proba` of two classes the chance of the second one is
    answered, else what `predict` says; a PyTorch module is given the numbers as a float32 tensor. A batch is a pandas
    DataFrame where pandas is installed, else a dict of lists. Missing values are NaN, or `None` among texts. What a model
    raises refuses the batch; the next one is answered again. What it prints goes to standard error.
    """
    score = _score_of(model)
    own_output = answers is None
    if own_output:
        # Answers keep the pipe for themselves; prints of libraries go where they disturb nothing.
        answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        os.dup2(2, 1)
    lines = rows if rows is not None else open(0, encoding="utf-8", newline="", closefd=False)
    header = next(csv.reader([lines.readline()]), [])
    types = _types(header)
    for batch in _batches(lines):
        table = list(csv.reader(batch))
        try:
            said = _answers(score(_frame(header, types, table)), len(table))
        except Exception as error:  # noqa: BLE001 - whatever a model raises is a refusal
            message = " ".join(f"{type(error).__name__}: {error}".split())
            said = [f"! {message[:_MESSAGE_LETTERS_MAX]}"]
        answers.write("".join(f"{line}\n" for line in said))
        answers.flush()
    if own_output:
        answers.close()


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    """The lines of each batch; an empty one ends it, unless it stands in a field with line ends."""
    batch: list[str] = []
    quotes = 0
    for line in lines:
        if quotes % 2 == 0 and not line.strip("\r\n"):
            if batch:
                yield batch
            batch = []
            continue
        quotes += line.count('"')
        batch.append(line)
    if batch:
        yield batch


def _types(header: Sequence[str]) -> list[str]:
    known = {it["name"]: it["type"] for it in json.loads(os.environ.get(_COLUMNS_VARIABLE, "[]"))}
    return [known.get(name, "text") for name in header]


def _frame(header: Sequence[str], types: Sequence[str], table: list[list[str]]) -> Any:
    columns = {
        name: [_cell(kind, row[index]) for row in table]
        for index, (name, kind) in enumerate(zip(header, types, strict=True))
    }
    for name, kind in zip(header, types, strict=True):
        # Whole numbers are whole unless one is missing, as pandas has it.
        if kind == "int" and not any(math.isnan(value) for value in columns[name]):
            columns[name] = [int(value) for value in columns[name]]
    try:
        import pandas
    except ImportError:
        return columns
    frame = pandas.DataFrame(columns)
    for name, kind in zip(header, types, strict=True):
        if kind in ("text", "bool"):
            frame[name] = frame[name].astype(object).where([value is not None for value in columns[name]], None)
    return frame


def _cell(kind: str, text: str) -> Any:
    if kind in ("int", "float"):
        return float(text) if text else math.nan
    if not text:
        return None
    if kind == "bool":
        return text == "true"
    if kind == "timestamp":
        return datetime.fromisoformat(text)
    return text


def _score_of(model: Any) -> Callable[[Any], Any]:
    if hasattr(model, "predict_proba"):
        if len(getattr(model, "classes_", ())) == 2:
            return lambda batch: [chances[1] for chances in model.predict_proba(batch).tolist()]
        return lambda batch: model.predict(batch)
    if hasattr(model, "predict"):
        return lambda batch: model.predict(batch)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return lambda batch: _of_module(torch, model, batch)
    if callable(model):
        return model
    raise InputError(f"{type(model).__name__} is no model: it has neither predict nor predict_proba, and is no function")


def _of_module(torch: Any, module: Any, batch: Any) -> Any:
    columns = batch.to_dict("list") if hasattr(batch, "to_dict") else batch
    with torch.no_grad():
        return module(torch.tensor(list(zip(*columns.values(), strict=True)), dtype=torch.float32))


def _answers(said: Any, rows: int) -> list[str]:
    if hasattr(said, "detach"):
        said = said.detach().cpu()
    values = said.tolist() if hasattr(said, "tolist") else list(said)
    # One column of predictions is a list of predictions.
    values = [value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value for value in values]
    if len(values) != rows:
        raise InputError(f"{len(values)} predictions for {rows} rows")
    return [_answer(value) for value in values]


def _answer(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    if isinstance(value, (list, tuple, dict)) or value is None or text.startswith("!") or "\n" in text or not text:
        raise InputError(f"a prediction is one number or one line of text for each row, not {value!r}")
    return text
