"""Training loops in PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ._watch import Batch, Watch, quiet

if TYPE_CHECKING:
    from .._run.run import Run


class TorchLoop(Watch):
    """Observes a training loop in PyTorch.

        watch = trackway.callbacks.TorchLoop(run, optimizer)
        for step, batch in watch.batches(loader, start=start, steps=10_000):
            ...
            watch.step(step, loss=loss)
            run.checkpoint(step)

    Records at each step: `step_seconds`, `batch_wait_seconds`, `samples_per_second`, `batch_digest`, `input_digest`,
    `learning_rate`, the values passed to `step`, and for the gradients at `optimizer.step()` `grad_norm` (their global
    norm) and `nonfinite_gradients` (the number of tensors with NaN or infinities); with a `scaler` also `loss_scale`;
    on a CUDA device, at first each step and then once a second, `memory_allocated_bytes` and `memory_reserved_bytes`.

    `optimizer` is one or several. `every`: inspect gradients and `step` values only every so many steps. Values on a
    device are copied in the background and recorded when they have arrived, a step or two later: the loop never waits
    for the device. While no parameter of the optimizer has changed since the first update: `unmoved_updates`, and a
    `grad_norm` of 0 if none of them had a gradient. Gradients that were clipped before `optimizer.step()` have the
    clipped norm: pass the result of `clip_grad_norm_` as `grad_norm=`, which is used instead; do the same for sharded gradients."""

    def __init__(
        self,
        run: Run | None = None,
        optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer] = (),
        *,
        scaler: Any = None,
        every: int = 1,
    ):
        super().__init__(run)
        self._optimizers = list(optimizer) if isinstance(optimizer, Sequence) else [optimizer]
        self._scaler = scaler
        self._every = max(1, every)
        self._steps = 0
        self._gradients: dict[str, Any] = {}
        self._updates = 0
        self.movement.has_gradients = False
        if self.run.enabled:
            for one in self._optimizers:
                one.register_step_pre_hook(self._before_update)

    def batches(self, loader: Iterable[Batch], **options: Any) -> Iterator[tuple[int, Batch]]:
        """`run.batches(loader, ...)`, with the time spent waiting for each batch."""
        return self.measured_batches(self.run.batches(loader, **options), lambda pair: pair[1])

    @quiet
    def step(self, step: int, *, samples: int | None = None, **values: Any) -> None:
        """Ends the step. `values` are numbers, or one-element tensors on any device: `loss=loss`. `samples`: the number
        of samples, if the first axis of the batch does not give it."""
        looked_at = self._looks()
        self._steps += 1
        found: dict[str, Any] = {**self.measured(samples), **self._gradients}
        if self._optimizers and not self._updates and self._scaler is not None:
            found["nonfinite_gradients"] = 1  # the scaler has looked, and left the update out
        self.movement.updates += bool(self._updates)
        self._gradients, self._updates = {}, 0
        if looked_at:
            self.movement.has_gradients |= "grad_norm" in values
            found |= self.unmoved(self._fingerprint)
            found |= values
            if self._scaler is not None:
                found["loss_scale"] = loss_scale(self._scaler)
        found |= device_memory(self)
        self.record(step, *apart(found))

    def _looks(self) -> bool:
        return self._steps % self._every == 0

    @quiet
    def _before_update(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._updates += 1
        self.updates_begin(self._fingerprint)
        self.movement.has_gradients = self.movement.has_gradients or bool(gradients_of(optimizer))
        if optimizer is self._optimizers[0]:
            self._gradients |= self.update()
        if "learning_rate" not in self._gradients:
            self._gradients["learning_rate"] = learning_rate(optimizer)
        if self._looks():
            before = {name: self._gradients[name] for name in GRADIENT_METRICS if name in self._gradients}
            self._gradients |= joined(before, gradient_metrics(gradients_of(optimizer)))

    def _fingerprint(self) -> torch.Tensor | None:
        return fingerprint(one for optimizer in self._optimizers for one in parameters_of(optimizer))


GRADIENT_METRICS = ("grad_norm", "nonfinite_gradients")


# By the bytes of an element: what its bits are read as.
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def fingerprint(parameters: Iterable[torch.Tensor]) -> torch.Tensor | None:
    """The sum of the bits of each trainable parameter, so that the least change shows; of distributed ones the local part. Stays
    on the device. None if there are none."""
    trained = [one.detach() for one in parameters if one.requires_grad]
    here = [one.to_local() if hasattr(one, "to_local") else one for one in trained]
    sums = [one.view(BITS[one.element_size()]).sum() for one in here if one.numel() and one.element_size() in BITS]
    return torch.stack([one.to(sums[0].device) for one in sums]) if sums else None


def parameters_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def gradients_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [one.grad for one in parameters_of(optimizer) if one.grad is not None]


def gradient_metrics(gradients: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """The global norm of the gradients, and the number of tensors with non-finite values. Stays on the device. For
    gradients distributed over processes (DTensor) only the second, for the local part."""
    if not gradients:
        return {}
    here = [one.to_local() if hasattr(one, "to_local") else one for one in gradients]
    norms = torch.cat([_norms(group).to(here[0].device) for group in _by_device(here)])
    found = {"nonfinite_gradients": (~torch.isfinite(norms)).sum()}
    if all(one is other for one, other in zip(here, gradients, strict=True)):
        found["grad_norm"] = torch.linalg.vector_norm(norms)
    return found


def _by_device(tensors: Sequence[torch.Tensor]) -> list[list[torch.Tensor]]:
    groups: dict[Any, list[torch.Tensor]] = {}
    for one in tensors:
        dense = one.detach().coalesce().values() if one.is_sparse else one.detach()
        groups.setdefault((dense.device, dense.dtype), []).append(dense)
    return list(groups.values())


def _norms(tensors: list[torch.Tensor]) -> torch.Tensor:
    """The norm of each tensor, on the device of the first; narrow floats are summed as float32."""
    wide = torch.float64 if tensors[0].dtype == torch.float64 else torch.float32
    each = getattr(torch, "_foreach_norm", None)  # one launch for all of them
    if each is not None:
        return torch.stack(each(tensors, 2, dtype=wide)).float()
    return torch.stack([torch.linalg.vector_norm(one, dtype=wide) for one in tensors]).float()


def joined(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The gradient metrics of two optimizers, combined as if they were one."""
    found = {**before, **now}
    if "grad_norm" in before and "grad_norm" in now:
        found["grad_norm"] = torch.hypot(before["grad_norm"], now["grad_norm"].to(before["grad_norm"].device))
    if before and now:
        count = now["nonfinite_gradients"].to(before["nonfinite_gradients"].device)
        found["nonfinite_gradients"] = before["nonfinite_gradients"] + count
    return found


def learning_rate(optimizer: Any) -> Any:
    """The learning rate of the first group: a number, or a tensor if the optimizer keeps it on the device."""
    return optimizer.param_groups[0].get("lr")


def loss_scale(scaler: Any) -> Any:
    """The scale, as a tensor if the scaler keeps one: `get_scale()` would wait for the device."""
    scale = getattr(scaler, "_scale", None)
    return scaler.get_scale() if scale is None else scale


def device_memory(watch: Watch) -> dict[str, float]:
    """If due, the memory held by PyTorch's allocator on the current CUDA device. Does not wait for the device."""
    if not torch.cuda.is_initialized() or not watch.memory_is_due():
        return {}
    return {
        "memory_allocated_bytes": torch.cuda.memory_allocated(),
        "memory_reserved_bytes": torch.cuda.memory_reserved(),
    }


def apart(values: Mapping[str, Any]) -> tuple[dict[str, Any], TorchFlight | None]:
    """Values that are known at once, and values that a device is still computing."""
    known: dict[str, Any] = {}
    on_device: dict[str, torch.Tensor] = {}
    for name, value in values.items():
        if isinstance(value, torch.Tensor) and value.device.type != "cpu" and value.numel() == 1:
            on_device[name] = value
        elif value is not None:
            known[name] = value.detach() if isinstance(value, torch.Tensor) else value
    return known, TorchFlight(on_device) if on_device else None


class TorchFlight:
    """One-element tensors, copied into pinned memory after everything that was launched so far."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]):
        # A copy is made in any case: the optimizer and the loop keep changing theirs.
        by_device: dict[torch.device, list[str]] = {}
        for name, tensor in tensors.items():
            by_device.setdefault(tensor.device, []).append(name)
        self._landings = [
            (names, *_send(torch.stack([tensors[name].detach().reshape(()).float() for name in names])))
            for names in by_device.values()
        ]

    def landed(self) -> bool:
        return all(event.query() for _, _, event in self._landings)

    def values(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for names, host, event in self._landings:
            event.synchronize()
            found |= dict(zip(names, host.tolist(), strict=True))
        return found


def _send(packed: torch.Tensor) -> tuple[torch.Tensor, Any]:
    """Where the values will be, and an event that signals their arrival."""
    if packed.device.type not in ("cuda", "xpu"):
        return packed, _Later()
    host = torch.empty(packed.shape, dtype=packed.dtype, pin_memory=True)
    host.copy_(packed, non_blocking=True)
    return host, torch.get_device_module(packed.device).current_stream(packed.device).record_event()


class _Later:
    """For devices without events to wait for a copy: the values are read two steps later, when the device has most
    likely finished them."""

    def __init__(self) -> None:
        self._asked = 0

    def query(self) -> bool:
        self._asked += 1
        return self._asked > 2

    def synchronize(self) -> None:
        """Reading waits by itself."""
