"""Shared by XGBoost and LightGBM: evaluations of named data by named metrics, after each round."""

from __future__ import annotations

from collections.abc import Iterable

# What the two libraries, their manuals and scikit-learn's interface call the data that is trained on.
TRAINING_NAMES = frozenset({"train", "training", "dtrain", "validation_0"})


def named_alike(reported: Iterable[tuple[str, str, float, bool]], only_data: bool) -> dict[str, float]:
    """Metrics from `(data, metric, value, higher_is_better)`. Each is recorded as `DATA_METRIC`; the first metric for
    which lower is better is also recorded as `loss` for the training data, or as `val_loss` for the first other data.
    `only_data`: there is one data set, and its name does not reveal which."""
    values: dict[str, float] = {}
    validation: str | None = None
    for data, metric, value, more_is_better in reported:
        values[f"{data}_{metric}"] = value
        if more_is_better:
            continue
        if data in TRAINING_NAMES and not (only_data and data == "validation_0"):
            values.setdefault("loss", value)
        elif validation in (None, data):
            validation = data
            values.setdefault("val_loss", value)
    return values
