"""The compiled half of the package. Not for direct use."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, final

@final
class Region:
    """Bytes behind the buffer protocol."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Stage:
    """The files of one checkpoint, gathered in memory."""

    def bytes(self, name: str, kind: str, bytes: bytes) -> None: ...
    def tensors(
        self,
        group: str,
        kind: str,
        metadata: list[tuple[str, str]],
        specs: list[tuple[str, str, list[int], int, int]],
    ) -> list[Region]: ...
    def submit(self, metrics: list[tuple[str, float]]) -> tuple[str, float]: ...

@final
class Loaded:
    """A committed checkpoint that verified."""

    @property
    def step(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def files(self) -> list[tuple[str, str]]: ...
    @property
    def metrics(self) -> list[tuple[str, float]]: ...
    @property
    def fallbacks(self) -> list[tuple[int | None, str]]: ...
    @property
    def object_prefix(self) -> str: ...
    def read(self, name: str) -> Region: ...

class Recorder:
    """The recorder of this process."""

    @property
    def enabled(self) -> bool:
        """Whether anything is recorded: false outside an attempt."""

    def log(self, step: int, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Records the values of metrics at a step, about a microsecond for a few of them. Never raises."""

    def event(self, kind: str, /, *, step: int | None = None, **fields: Any) -> None:
        """Records something that happened, such as `epoch_finished`; the fields are written as text. Never raises."""

    def param(self, name: str, value: Any, /) -> None:
        """Records a parameter of the run; the value is written as text. Never raises."""

    def heartbeat(self, step: int, /) -> None:
        """Says that the process is alive and at this step. Never raises."""

    def stop_on_sigterm(self) -> None:
        """From now on SIGTERM makes `should_stop()` true instead of ending the process."""

    def _stop_asked(self) -> bool: ...
    def _checkpoint_due(self, step: int) -> bool: ...
    def _begin(self, step: int) -> Stage | None: ...
    def _resume(self) -> Loaded | None: ...
    def _finish(self) -> None: ...

@final
class Root:
    """A checkpoint root that is written to without a run."""

    def __init__(self, path: str | PathLike[str]) -> None: ...
    def begin(self, step: int) -> Stage: ...

def list_checkpoints(path: str) -> str: ...
def load_checkpoint(path: str, number: int | None = None) -> Loaded | None: ...
def verify_checkpoint(path: str, number: int) -> str | None: ...
