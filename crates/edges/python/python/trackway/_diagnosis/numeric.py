"""What a diagnosis observes of PyTorch when values are NaN or infinite, or grow: the first such output, gradient or
parameter in the order of execution, with its layer, operation, line and batch.

Calls of PyTorch's functions pass through a `TorchFunctionMode`; layers and optimizers are observed with global hooks.
Autograd's anomaly mode keeps where each operation was called; its own check is off, because it ends the script at the
first NaN and does not see infinities: hooks on the operations of each backward pass look instead.
"""

from __future__ import annotations

import functools
import os
import statistics
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from .._observing.batch_facts import leaves, tensor_facts
from .._observing.gradients import gradients_of
from .._observing.observing import Mode, guarded
from .._state import state as _state
from .facts import TENSORS_MAX, DiagnosisFacts

# Operations of one backward pass that are observed.
NODES_MAX = 100_000
# Steps that the usual norm of a gradient is the median of, and how many there must be.
NORMS_KEPT, NORMS_MIN = 32, 3
# Growths that are kept, and what is a large one: times its usual norm, as for the detector `gradient_explosion`.
GROWTHS_MAX, LARGE_GROWTH = 64, 10.0
# Names and lines of a list.
LISTED_MAX = 8

# Attributes and copies: what they return exists already.
IGNORED = frozenset(
    {"__get__", "__set__", "detach", "data", "isfinite", "isnan", "isinf", "requires_grad_", "__repr__"}
)
TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep
OWN_FOLDER = os.path.dirname(os.path.dirname(__file__)) + os.sep


class Watch:
    """Observes the training of one process from `begin` to `conclude`."""

    def __init__(self, diagnosis: DiagnosisFacts, components: Mapping[str, Any]):
        self.diagnosis = diagnosis
        self.paused = False
        self.observes = False
        self._components = components
        self._names: dict[int, str] = {}
        self._parameters: dict[int, tuple[str, Any]] = {}
        self._layers: list[Any] = []
        # What is recorded: the first value that is not finite. A candidate is an infinity that may be meant.
        self._found: dict[str, Any] | None = None
        self._candidate: dict[str, Any] | None = None
        self._backward: dict[str, Any] | None = None
        self._is_scaled = False
        self._first_begin = True
        self._norms: dict[str, deque[float]] = {}
        # Each grew more than all before.
        self._growths: deque[dict[str, Any]] = deque(maxlen=GROWTHS_MAX)
        for name, component in components.items():
            if _state.is_module(component):
                self._meet(component, name)
        handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
            register_optimizer_step_post_hook(self._after_update),
        ]
        self._removals = [handle.remove for handle in handles]
        scale = torch.amp.GradScaler.scale

        def scaled(*arguments: Any) -> Any:
            self._is_scaled = True
            return scale(*arguments)

        torch.amp.GradScaler.scale = scaled  # type: ignore[assignment, method-assign]
        self._removals.append(lambda: setattr(torch.amp.GradScaler, "scale", scale))
        torch.autograd.set_detect_anomaly(True, check_nan=False)
        self._mode = Mode(self)
        self._mode.__enter__()

    # Set by the diagnosis

    def begin(self, step: int, observes: bool) -> None:
        self.observes, self._candidate, self._backward = observes, None, None
        self._layers = []
        if self._found is not None:
            self.diagnosis.enough = True
        elif self._first_begin and observes:
            self._first_begin = False
            self._check_parameters()

    def conclude(self) -> None:
        self.observes = False
        if self._found is None:
            self._tell_growth()
        self._mode.__exit__(None, None, None)
        for remove in self._removals:
            remove()

    # For the mode

    def fail(self, where: str, error: Exception) -> None:
        """Records once what could not be observed."""
        self.diagnosis.blind(where, error)

    def call(self, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Calls a function of PyTorch and looks at its result."""
        result = function(*arguments, **named)
        if self.observes and torch.is_grad_enabled():
            self._after_function(function, arguments, named, result)
        return result

    # Names

    def _meet(self, module: Any, name: str) -> None:
        module = _state.unwrap(module)
        if id(module) in self._names:
            return
        prefix = f"{name}." if self._names else ""
        for inner, layer in module.named_modules():
            self._names[id(layer)] = (prefix + _state.clean_name(inner)).rstrip(".")
        for inner, parameter in module.named_parameters():
            self._parameters[id(parameter)] = (prefix + _state.clean_name(inner), parameter)

    def _layer(self, module: Any) -> dict[str, Any]:
        return {"layer": self._names.get(id(module)) or None, "layer_type": type(module).__name__}

    # The forward pass

    def _enter(self, module: Any, arguments: Any) -> None:
        if self.paused:
            return
        if not self._layers and torch.is_grad_enabled() and id(module) not in self._names:
            self._meet(module, type(module).__name__)
        self._layers.append(module)
        if len(self._layers) == 1 and self.observes and torch.is_grad_enabled():
            self._check_inputs(module, arguments)

    def _leave(self, module: Any, arguments: Any, result: Any) -> None:
        if not self.paused and self._layers:
            self._layers.pop()

    @guarded
    def _check_inputs(self, module: Any, arguments: Any) -> None:
        bad = _first_bad(_tensors(arguments))
        if bad is not None and self._found is None:
            self._find("input", bad, {**self._layer(module), "inputs": _described(arguments)})

    @guarded
    def _after_function(self, function: Any, arguments: Any, named: Any, result: Any) -> None:
        operation = getattr(function, "__name__", str(function))
        if self._found is not None or operation in IGNORED:
            return
        tensors = _tensors(result)
        node = next((one.grad_fn for one in tensors if one.grad_fn is not None), None)
        if node is not None and self._layers:
            node.metadata["trackway_layer"] = self._layer(self._layers[-1])  # type: ignore[index]
        if node is None and not self._layers:
            return
        bad = _first_bad(tensors)
        if bad is None:
            return
        seen = self._seen_forward(operation, {**dict(enumerate(arguments)), **named})
        if bad == "NaN":
            if self._candidate is not None:
                seen, bad = self._candidate, "infinite value"
            self._find(seen.pop("place"), bad, seen)
        elif self._candidate is None and node is not None:
            self._candidate = seen

    def _seen_forward(self, operation: str, arguments: Any) -> dict[str, Any]:
        layer = self._layers[-1] if self._layers else None
        own = layer.named_parameters(recurse=False) if layer is not None else ()
        return {
            "place": "forward" if layer is not None else "loss",
            **(self._layer(layer) if layer is not None else {}),
            "operation": operation,
            "source": _line_of_script(),
            "inputs": _described(arguments),
            "bad_parameters": [name for name, one in own if not _is_finite(one)][:LISTED_MAX],
        }

    # The backward pass

    def before_backward(self, loss: Any) -> None:
        if self.observes and not self.paused:
            self._hook(loss)

    @guarded
    def _hook(self, loss: Any) -> None:
        self._backward = None
        if self._found is None and self._candidate is not None and not _is_finite(loss):
            self._find(self._candidate.pop("place"), "infinite value", self._candidate)
        waiting: list[Any] = [loss.grad_fn]
        seen: set[Any] = set()
        while waiting and len(seen) < NODES_MAX:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if hasattr(node, "variable"):
                node.register_prehook(functools.partial(self._into_parameter, node.variable))
            else:
                node.register_hook(functools.partial(self._through, node))
                waiting.extend(parent for parent, _ in node.next_functions)

    @guarded
    def _through(self, node: Any, returned: Any, given: Any) -> None:
        """An operation of the backward pass has returned its gradients."""
        if self._backward is not None and "operation" in self._backward:
            return
        bad = _first_bad(_tensors(returned))
        if bad is None:
            return
        layer = node.metadata.get("trackway_layer") or {}
        trace = "".join(node.metadata.get("traceback_") or [])
        self._backward = {
            **(self._backward or {}),
            "operation": node.name(),
            **layer,
            "source": _last_script_line(trace),
            "inputs": _described(given),
            "value": bad,
        }

    @guarded
    def _into_parameter(self, parameter: Any, gradients: Any) -> None:
        """A gradient arrives at a parameter."""
        if self._backward is not None and "parameter" in self._backward:
            return
        bad = _first_bad(_tensors(gradients))
        if bad is None:
            return
        name, _ = self._parameters.get(id(parameter), (f"a parameter of shape {list(parameter.shape)}", None))
        self._backward = {"value": bad, **(self._backward or {}), "parameter": name}

    def after_backward(self) -> None:
        if self.observes:
            self._see_gradients()

    @guarded
    def _see_gradients(self) -> None:
        parameters = list(self._parameters.values())
        found = gradients_of(parameters)
        gradient = None
        if self._backward is not None:
            gradient = {
                "parameter": self._backward.get("parameter"),
                "operation": self._backward.get("operation"),
                "layer": self._backward.get("layer"),
                "nonfinite": len(found.nonfinite),
                "of": len(found.norms),
            }
        if self._found is not None:
            if gradient is not None and "gradient" not in self._found:
                self._tell({**self._found, "gradient": gradient})
        elif gradient is not None and self._is_scaled:
            self._backward = None  # such a step is left out by the scaler, as it is meant to
        elif gradient is not None and self._backward is not None:
            seen = {name: self._backward[name] for name in self._backward if name not in ("value", "parameter")}
            self._find("backward", self._backward["value"], {**seen, "gradient": gradient})
        else:
            self._measure(found.norms)

    def _measure(self, norms: Mapping[str, float]) -> None:
        """Keeps the gradient that grew the most in this step, if none of an earlier step grew more."""
        best: dict[str, Any] = {"ratio": 0.0}
        for name, norm in norms.items():
            known = self._norms.setdefault(name, deque(maxlen=NORMS_KEPT))
            usual = statistics.median(known) if len(known) >= NORMS_MIN else 0.0
            known.append(norm)
            ratio = norm / usual if usual > 0 else 0.0
            if ratio > best["ratio"]:
                best = {"parameter": name, "norm": norm, "usual": usual, "ratio": ratio}
        if best["ratio"] > max((seen["ratio"] for seen in self._growths), default=0.0):
            self._growths.append({**self.diagnosis.place(), **best, "batch_tensors": self.diagnosis.batch_tensors()})

    def _tell_growth(self) -> None:
        """Records the first step in which a gradient grew a lot, or else the one in which one grew the most: what
        follows the first often grows because of it."""
        if self._growths:
            large = (seen for seen in self._growths if seen["ratio"] >= LARGE_GROWTH)
            self.diagnosis.say("growth", next(large, self._growths[-1]))

    # The update

    def _after_update(self, *_: Any) -> None:
        if self.observes and self._found is None:
            self._check_update()

    @guarded
    def _check_update(self) -> None:
        bad = self._bad_parameters()
        if bad:
            self._find("update", "value that is not finite", {"parameter": bad[0], "bad_parameters": bad[:LISTED_MAX]})

    @guarded
    def _check_parameters(self) -> None:
        bad = self._bad_parameters()
        if bad:
            self._find("parameter", "value that is not finite", {"bad_parameters": bad[:LISTED_MAX]})

    def _bad_parameters(self) -> list[str]:
        return [name for name, parameter in self._parameters.values() if not _is_finite(parameter)]

    # What is recorded

    def _find(self, place: str, value: str, seen: dict[str, Any]) -> None:
        batch = self.diagnosis.batch_tensors()
        self._tell({**self.diagnosis.place(), "place": place, "value": value, **seen, "batch_tensors": batch})

    def _tell(self, found: dict[str, Any]) -> None:
        self._found = found
        self.diagnosis.say("numeric", found)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for one in value for tensor in _tensors(one)]


def _is_finite(tensor: torch.Tensor) -> bool:
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.numel() == 0:
        return True
    return bool(torch.isfinite(tensor.detach()).all())


def _first_bad(tensors: Iterable[torch.Tensor]) -> str | None:
    """`NaN` or `infinite value`, of the first tensor that is not finite."""
    for tensor in tensors:
        if tensor is not None and not _is_finite(tensor):
            return "NaN" if bool(torch.isnan(tensor.detach()).any()) else "infinite value"
    return None


def _described(value: Any) -> list[dict[str, Any]]:
    """The tensors of the arguments of a call, in numbers."""
    arguments = {str(name): one for name, one in value.items()} if isinstance(value, Mapping) else value
    tensors = [(name, one) for name, one in leaves(arguments) if isinstance(one, torch.Tensor)]
    return [tensor_facts(name, one.detach()) for name, one in tensors[:TENSORS_MAX]]


def _line_of_script() -> str | None:
    """The innermost line that belongs neither to PyTorch nor to this package."""
    frame: Any = sys._getframe()
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((TORCH_FOLDER, OWN_FOLDER, "<")):
            return f"{os.path.basename(path)}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back
    return None


def _last_script_line(trace: str) -> str | None:
    """The same from the text of a traceback."""
    lines = [line.strip() for line in trace.splitlines()]
    for line in reversed([line for line in lines if line.startswith('File "')]):
        path, _, rest = line.removeprefix('File "').partition('", line ')
        if not path.startswith((TORCH_FOLDER, OWN_FOLDER, "<")):
            number, _, function = rest.partition(", in ")
            return f"{os.path.basename(path)}:{number} in {function}"
    return None
