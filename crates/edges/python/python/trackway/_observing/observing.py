"""Shared by what observes PyTorch without changes to the script: rehearsals and diagnoses.

Calls of PyTorch's functions pass through a `TorchFunctionMode`. Failures of an observer are recorded by it and never
raised: it must not change the script.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.overrides import TorchFunctionMode


class Observer(Protocol):
    """Gets the calls that pass through a `Mode`."""

    paused: bool

    def fail(self, where: str, error: Exception) -> None:
        """Records once what could not be observed."""

    def before_backward(self, loss: Any) -> None:
        """`loss.backward()` is about to be called."""

    def after_backward(self) -> None:
        """It returned."""

    def call(self, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Calls another function of PyTorch and returns its result."""


def guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a method of an observer without gradients and without being observed, and keeps failures away from the
    script."""

    @functools.wraps(method)
    def run(self: Observer, *arguments: Any, **named: Any) -> Any:
        if self.paused:
            return None
        self.paused = True
        try:
            with torch.no_grad(), torch._C.DisableTorchFunction():
                return method(self, *arguments, **named)
        except Exception as error:  # noqa: BLE001 - an observer never ends the script
            self.fail(method.__name__, error)
            return None
        finally:
            self.paused = False

    return run


class Mode(TorchFunctionMode):
    """Reports the calls of PyTorch's functions to an observer, which forwards them."""

    def __init__(self, observer: Observer):
        super().__init__()
        self.observer = observer

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is not torch.Tensor.backward:
            return self.observer.call(function, args, kwargs)
        self.observer.before_backward(args[0])
        result: Any = function(*args, **kwargs)
        self.observer.after_backward()
        return result
