"""The Trainer of Hugging Face Transformers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from ._watch import Watch, quiet
from .torch import apart, device_memory, fingerprint, gradient_metrics, gradients_of, learning_rate

if TYPE_CHECKING:
    from .._run.run import Run


class TransformersCallback(Watch, TrainerCallback):
    """Records a training with the Trainer: `Trainer(..., callbacks=[trackway.callbacks.TransformersCallback()])`.

    At each update: `learning_rate`, `nonfinite_gradients`, `step_seconds`, `batch_wait_seconds`, `samples_per_second`;
    on a CUDA device, at first each step and then once a second, `memory_allocated_bytes` and
    `memory_reserved_bytes`. At `logging_steps`, where the
    Trainer waits for the device anyway, its logs: `loss`, `grad_norm` (before clipping) and others; after an
    evaluation, `val_loss` and `val_…` for `eval_loss` and `eval_…`. When Trackway requests a stop, the Trainer saves
    and ends. A checkpoint that it has written is reported, so that it is committed at once. The callback never makes
    the loop wait for the device. While no trainable parameter of the model has changed since the first update:
    `unmoved_updates`."""

    def __init__(self, run: Run | None = None):
        super().__init__(run)
        self._found: dict[str, Any] = {}

    @quiet
    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.begin()

    @quiet
    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.waited()
        if self._began is None:
            self.begin()

    @quiet
    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        optimizer = given["optimizer"]
        found = gradient_metrics(gradients_of(optimizer))
        self.updates_begin(lambda: fingerprint(given["model"].parameters()))
        self.movement.updates += 1
        found.pop("grad_norm", None)  # they are clipped by now; the Trainer logs the norm from before
        self._found = {"learning_rate": learning_rate(optimizer), **found}

    @quiet
    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> Any:
        samples = args.train_batch_size * args.gradient_accumulation_steps
        found = {**self.measured(samples), **self.update(samples), **self._found}
        self._found = {}
        found |= self.unmoved(lambda: fingerprint(given["model"].parameters()))
        found |= device_memory(self)
        self.record(state.global_step, *apart(found))
        if self.run.should_stop():
            control.should_save = control.should_training_stop = True
        return control

    @quiet
    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self.record(state.global_step, named_alike(logs or {}))

    @quiet
    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.pause()

    @quiet
    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.pause()
        # Of several processes each writes a part, and they end at different times: there the Trainer's last file shows it.
        folder = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        if args.world_size == 1 and os.path.isdir(folder):
            self.run.wrote_checkpoint(folder, step=state.global_step)

    @quiet
    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.land_all()


def named_alike(logs: Mapping[str, Any]) -> dict[str, Any]:
    """The Trainer's logs, under the names used for other frameworks; the learning rate is recorded already."""
    return {
        f"val_{name.removeprefix('eval_')}" if name.startswith("eval_") else name: value
        for name, value in logs.items()
        if name != "learning_rate"
    }
