"""A run as its observers see it: rehearsals and diagnoses. They record beside the script, and change nothing of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol


class ObservedRun(Protocol):
    """What an observer uses of a run (`trackway.Run`)."""

    @property
    def epoch(self) -> int:
        """The number of finished epochs."""

    @property
    def _components(self) -> Mapping[str, Any]:
        """What was passed to `resume()` last."""

    @property
    def _rank(self) -> int:
        """The number of this process, from 0."""

    @property
    def _next_step(self) -> int:
        """The step after the one that was begun last."""

    def artifact(self, path: str | os.PathLike[str], /, *, name: str | None = None, step: int | None = None) -> None:
        """Stores a copy of a file."""

    def _event(self, kind: str, step: int | None, fields: dict[str, Any], /) -> None:
        """Records an event."""

    def _log(self, step: int, values: Mapping[str, Any] | None, named: dict[str, Any], /) -> str | None:
        """Records values of a step."""

    def _rehearsal_baseline(self, loss: float) -> None:
        """Reports the loss that a model must beat."""

    def _before_finish(self, conclude: Callable[[], None]) -> None:
        """Registers what is to be called before the record is closed."""
