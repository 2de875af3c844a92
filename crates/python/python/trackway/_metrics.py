from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import InputError


def as_floats(metrics: Mapping[str, Any] | None) -> list[tuple[str, float]]:
    """The metrics that are kept with a checkpoint. Raises InputError for what is no number."""
    try:
        return [(str(name), float(value)) for name, value in (metrics or {}).items()]
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"metrics of a checkpoint must be numbers by name: {error}") from error
