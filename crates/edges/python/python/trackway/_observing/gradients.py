"""Which parameters have gradients that are not finite: one look at each parameter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .._state import arrays as _arrays
from .._state import state as _state
from .._trackway import Recorder

# Parameters that are looked at.
PARAMETERS_MAX = 100_000
# Names in the event.
NAMES_MAX = 8


class Gradients(NamedTuple):
    """The norms of the gradients that exist and are finite in the order of the model, and the names of the others."""

    norms: dict[str, float]
    nonfinite: list[str]


def gradients_of(parameters: Iterable[tuple[str, Any]]) -> Gradients:
    """Looks at the gradients of parameters; waits once for each device."""
    torch = _arrays.loaded("torch")
    named = [(name, one.grad) for name, one in parameters if one.grad is not None][:PARAMETERS_MAX]
    by_device: dict[Any, list[tuple[str, Any]]] = {}
    for name, gradient in named:
        local = gradient.to_local() if hasattr(gradient, "to_local") else gradient
        dense = local.detach().coalesce().values() if local.is_sparse else local.detach()
        by_device.setdefault(dense.device, []).append((name, dense))
    norms: dict[str, float] = {}
    for group in by_device.values():
        each = torch.stack([torch.linalg.vector_norm(one.float()) for _, one in group]).tolist()
        norms.update(zip((name for name, _ in group), each, strict=True))
    # In the order of the model, whatever the devices.
    ordered = {name: norms[name] for name, _ in named}
    return Gradients(ordered, [name for name, norm in ordered.items() if not math.isfinite(norm)])


def tell_gradients(recorder: Recorder, components: Mapping[str, Any], step: int, metric: str) -> None:
    """Records which parameters of the components have gradients that are not finite, after the first loss or gradient
    norm of that kind.

    Of several the last one in the model is named first: the backward pass reached it before the others."""
    torch = _arrays.loaded("torch")
    if torch is None:
        return
    parameters = [
        (_state.clean_name(name), one)
        for model in _state.models_in(components)
        for name, one in model.named_parameters()
    ]
    if not parameters:
        return
    with torch.no_grad():
        found = gradients_of(parameters)
        weights = next((name for name, one in parameters[:PARAMETERS_MAX] if not bool(torch.isfinite(one).all())), None)
    fields: dict[str, Any] = {"metric": metric, "nonfinite": len(found.nonfinite), "of": len(found.norms)}
    if found.nonfinite:
        fields = {"parameter": found.nonfinite[-1], **fields}
        others = list(reversed(found.nonfinite[:-1]))
        fields["others"] = ", ".join(others[:NAMES_MAX]) + (", …" if len(others) > NAMES_MAX else "")
    if weights is not None:
        fields["weights"] = weights
    recorder._event("nonfinite_gradients", step, fields)
