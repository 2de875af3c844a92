"""A model as a scoring command: rows on standard input, one prediction per line on standard output
(docs/scoring.md)."""

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
_FORMAT_VARIABLE = "TRACKWAY_SCORING_FORMAT"
_GRADIENTS_VARIABLE = "TRACKWAY_SCORING_GRADIENTS"
_MESSAGE_LETTERS_MAX = 500


def serve_scores(
    model: Any, *, gradients: Callable[[Any], Any] | None = None, rows: Any = None, answers: TextIO | None = None
) -> None:
    """Answers batches of rows until the input ends.

    `model` is a function of a batch, or a fitted model: with a binary `predict_proba` the probability of the second
    class is returned, else the result of `predict`; a PyTorch module gets the columns as a float32 tensor. A batch is a
    pandas DataFrame if pandas is installed, else a dict of lists. Missing values are NaN, or `None` in string columns.
    If the model raises, the batch is refused; the next one is answered again. What the model prints goes to standard
    error.

    `gradients` is a function of a batch: for each row, the derivative of the prediction with respect to each column, as
    an array of rows by columns (NaN if undefined) or as a dict of columns, in units of the prediction per unit of the
    column. A PyTorch module does not need it. Rows as Arrow need `pyarrow`.
    """
    score = _score_of(model)
    wants_gradients = os.environ.get(_GRADIENTS_VARIABLE) == "1"
    slopes = _slopes_of(model, gradients) if wants_gradients else None
    output = answers
    if output is None:
        # Answers keep the pipe for themselves; prints of libraries go where they disturb nothing.
        output = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        os.dup2(2, 1)
    is_arrow = os.environ.get(_FORMAT_VARIABLE) == "arrow"
    for names, batch, count in _arrow_batches(rows) if is_arrow else _csv_batches(rows):
        try:
            said = _answers(score(batch), count)
            if slopes is not None:
                said = [",".join(line) for line in zip(said, *_slopes(slopes(batch), names, count), strict=True)]
        except Exception as error:  # noqa: BLE001 - whatever a model raises is a refusal
            message = " ".join(f"{type(error).__name__}: {error}".split())
            said = [f"! {message[:_MESSAGE_LETTERS_MAX]}"]
        output.write("".join(f"{line}\n" for line in said))
        output.flush()
    if answers is None:
        output.close()


def _csv_batches(rows: TextIO | None) -> Iterator[tuple[list[str], Any, int]]:
    # The descriptor stays open: it is not this function that opened it.
    lines = rows if rows is not None else open(0, encoding="utf-8", newline="", closefd=False)  # noqa: SIM115
    names = next(csv.reader([lines.readline()]), [])
    types = _types(names)
    for batch in _batches(lines):
        table = list(csv.reader(batch))
        columns = {
            name: [_cell(kind, row[index]) for row in table]
            for index, (name, kind) in enumerate(zip(names, types, strict=True))
        }
        yield names, _frame(columns, types), len(table)


def _arrow_batches(rows: Any) -> Iterator[tuple[list[str], Any, int]]:
    try:
        import pyarrow
    except ImportError as error:
        raise InputError(
            "rows are sent as Arrow, but pyarrow is not installed: `pip install pyarrow`, or use --batch-format csv"
        ) from error
    # The file stays open: record batches are read as they come.
    stream = rows if rows is not None else os.fdopen(os.dup(0), "rb")
    with pyarrow.ipc.open_stream(stream) as reader:
        names = reader.schema.names
        types = _types(names)
        for batch in reader:
            columns = {
                name: column.to_numpy(zero_copy_only=False).copy() if kind in ("int", "float") else column.to_pylist()
                for name, kind, column in zip(names, types, batch.columns, strict=True)
            }
            yield names, _frame(columns, types), batch.num_rows


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    """The lines of each batch; an empty line ends it, unless it is inside a quoted field."""
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


def _frame(columns: dict[str, Any], types: Sequence[str]) -> Any:
    for (name, values), kind in zip(columns.items(), types, strict=True):
        # Whole numbers are integers unless one is missing, as in pandas, or a fraction of one is scored.
        if kind == "int" and all(float(value).is_integer() for value in values):
            columns[name] = values.astype("int64") if hasattr(values, "astype") else [int(value) for value in values]
    try:
        import pandas
    except ImportError:
        return {name: list(values) for name, values in columns.items()}
    frame = pandas.DataFrame(columns)
    for (name, values), kind in zip(columns.items(), types, strict=True):
        if kind in ("text", "bool"):
            frame[name] = frame[name].astype(object).where([value is not None for value in values], None)
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
    xgboost = sys.modules.get("xgboost")
    if xgboost is not None and isinstance(model, xgboost.Booster):
        return lambda batch: model.predict(xgboost.DMatrix(batch))
    if hasattr(model, "predict"):
        return lambda batch: model.predict(batch)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return lambda batch: _of_module(torch, model, batch)
    if callable(model):
        return lambda batch: model(batch)
    raise InputError(f"{type(model).__name__} is not a model: it has no predict or predict_proba, and is not callable")


def _of_module(torch: Any, module: Any, batch: Any) -> Any:
    with torch.no_grad():
        return module(_tensor(torch, batch))


def _tensor(torch: Any, batch: Any) -> Any:
    columns = batch.to_dict("list") if hasattr(batch, "to_dict") else batch
    return torch.tensor(list(zip(*columns.values(), strict=True)), dtype=torch.float32)


def _slopes_of(model: Any, gradients: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """The function that computes gradients; None if there is none, then only predictions are returned."""
    if gradients is not None:
        return gradients
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        return None

    def of_module(batch: Any) -> Any:
        inputs = _tensor(torch, batch).requires_grad_()
        # Rows do not look at each other, so that the gradient of the sum holds each row's own.
        return torch.autograd.grad(model(inputs).sum(), inputs)[0]

    return of_module


def _slopes(said: Any, names: Sequence[str], rows: int) -> Iterator[list[str]]:
    """The gradients of each column as strings; empty if undefined."""
    if hasattr(said, "detach"):
        said = said.detach().cpu()
    if not isinstance(said, dict):
        table = said.tolist() if hasattr(said, "tolist") else [list(row) for row in said]
        if len(table) != rows or any(len(row) != len(names) for row in table):
            raise InputError(f"gradients must have {rows} rows and {len(names)} columns: {', '.join(names)}")
        said = dict(zip(names, zip(*table, strict=True), strict=True))
    unknown = [name for name in said if name not in names]
    if unknown:
        raise InputError(f"there are gradients of `{unknown[0]}`, but no such column")
    for name in names:
        values = said.get(name, [math.nan] * rows)
        numbers = [float(value) for value in (values.tolist() if hasattr(values, "tolist") else values)]
        if len(numbers) != rows:
            raise InputError(f"{len(numbers)} gradients of `{name}` for {rows} rows")
        yield ["" if math.isnan(number) else repr(number) for number in numbers]


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
        raise InputError(f"a prediction must be one number or one line of text per row, not {value!r}")
    return text
