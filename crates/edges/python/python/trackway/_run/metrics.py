from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InputError


def as_floats(metrics: Mapping[str, Any] | None) -> list[tuple[str, float]]:
    """The metrics stored with a checkpoint. Raises InputError for a value that is not a number."""
    try:
        return [(str(name), float(value)) for name, value in (metrics or {}).items()]
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"metrics of a checkpoint must be a dict of numbers: {error}") from error
