"""Training loops in JAX, with Flax, optax or neither."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ._watch import Batch, Watch, quiet

if TYPE_CHECKING:
    from .._run.run import Run


def gradient_metrics(gradients: Any) -> dict[str, jax.Array]:
    """`grad_norm`, the global norm of the gradients, and `nonfinite_gradients`, the number of gradient arrays with NaN
    or infinities. Call it within the jitted step, and return the result: `watch.step(step, loss=loss, **metrics)`."""
    squares = [jnp.sum(jnp.square(jnp.abs(one).astype(jnp.float32))) for one in jax.tree_util.tree_leaves(gradients)]
    if not squares:
        return {}
    each = jnp.stack(squares)
    return {"grad_norm": jnp.sqrt(jnp.sum(each)), "nonfinite_gradients": jnp.sum(~jnp.isfinite(each))}


class JaxLoop(Watch):
    """Observes a training loop in JAX.

        watch = trackway.callbacks.JaxLoop(run)
        for step, batch in watch.batches(loader, steps=10_000):
            params, state, loss, metrics = update(params, state, batch)
            watch.step(step, loss=loss, **metrics)

    Records at each step: `step_seconds`, `batch_wait_seconds`, `samples_per_second`, `batch_digest`, `input_digest` and
    the values passed to `step`; `gradient_metrics(gradients)` within the jitted `update` computes `grad_norm` and
    `nonfinite_gradients`. At first each step and then once a second `memory_allocated_bytes` and
    `memory_reserved_bytes`, if the device reports
    them.

    Arrays are copied to the host in the background and recorded when they are ready: the loop never waits for them. JAX
    runs ahead of the device, so step times match those of the device only on average over many steps. `every`: record
    the values only every so many steps."""

    def __init__(self, run: Run | None = None, *, every: int = 1):
        super().__init__(run)
        self._every = max(1, every)
        self._steps = 0

    def batches(self, loader: Iterable[Batch], **options: Any) -> Iterator[tuple[int, Batch]]:
        """`run.batches(loader, ...)`, with the time spent waiting for each batch."""
        return self.measured_batches(self.run.batches(loader, **options), lambda pair: pair[1])

    @quiet
    def step(self, step: int, *, samples: int | None = None, **values: Any) -> None:
        """Ends the step. `values` are numbers or one-element arrays. `samples`: the number of samples, if the first
        axis of the batch does not give it."""
        found: dict[str, Any] = self.measured(samples)
        if self._steps % self._every == 0:
            found |= values
        self._steps += 1
        if self.memory_is_due():
            found |= device_memory()
        self.record(step, *apart(found))


def device_memory() -> dict[str, float]:
    """The memory reported by the allocator of the first device; nothing on a CPU. Does not wait for the device."""
    reported = jax.local_devices()[0].memory_stats() or {}
    names = {"bytes_in_use": "memory_allocated_bytes", "pool_bytes": "memory_reserved_bytes"}
    return {name: reported[stat] for stat, name in names.items() if stat in reported}


def apart(values: Mapping[str, Any]) -> tuple[dict[str, Any], JaxFlight | None]:
    """Values that are known at once, and values that a device is still computing."""
    arrays = {name: value for name, value in values.items() if isinstance(value, jax.Array) and value.size == 1}
    known = {name: value for name, value in values.items() if name not in arrays and value is not None}
    return known, JaxFlight(arrays) if arrays else None


class JaxFlight:
    """One-element arrays on their way to the host."""

    def __init__(self, arrays: Mapping[str, jax.Array]):
        self._arrays: dict[str, Any] = {name: _here(array) for name, array in arrays.items()}
        for array in self._arrays.values():
            array.copy_to_host_async()

    def landed(self) -> bool:
        return all(array.is_ready() for array in self._arrays.values())

    def values(self) -> dict[str, float]:
        return {name: float(array.item()) for name, array in self._arrays.items()}


def _here(array: jax.Array) -> jax.Array:
    """The local copy of an array that several processes hold."""
    return array if array.is_fully_addressable else array.addressable_data(0)
