"""Lightning, as `lightning` or `pytorch_lightning`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import torch

from ..errors import InputError
from ..lightning import TrackwayCheckpointIO
from ._watch import Watch, quiet
from .torch import apart, device_memory, fingerprint, gradient_metrics, gradients_of, learning_rate

if not TYPE_CHECKING and ("lightning.pytorch" in sys.modules or "lightning" in sys.modules):
    from lightning.fabric.plugins import TorchCheckpointIO
    from lightning.pytorch import Callback
else:
    from lightning_fabric.plugins import TorchCheckpointIO
    from pytorch_lightning import Callback

if TYPE_CHECKING:
    from .._run.run import Run


# The file, in the Trainer's `default_root_dir`, that points to what was saved by the cadence of the run file.
POINTER_NAME = "trackway.ckpt"


def storage_of(trainer: Any) -> TrackwayCheckpointIO | None:
    """What saves the checkpoints of a Trainer, if it is Trackway."""
    io = getattr(trainer.strategy, "checkpoint_io", None)
    return io if isinstance(io, TrackwayCheckpointIO) else None


def saves_by_itself(strategy: Any) -> bool:
    """Whether a strategy, such as that of FSDP, writes checkpoints without the plugin."""
    general = next((base for base in type(strategy).__mro__ if base.__name__ == "Strategy"), None)
    return type(strategy).save_checkpoint is not getattr(general, "save_checkpoint", None)


class LightningCallback(Watch, Callback):
    """Records a training with Lightning: `Trainer(callbacks=[trackway.callbacks.LightningCallback()])`.

    At each update: `loss`, `learning_rate`, `grad_norm` (before clipping), `nonfinite_gradients`, `step_seconds`,
    `batch_wait_seconds`, `samples_per_second`, `batch_digest`, `input_digest`; with fp16 `loss_scale`; on a CUDA
    device, at first each step and then once a second, `memory_allocated_bytes` and `memory_reserved_bytes`;
    after a validation, the values passed
    to `self.log` in it; while no trainable parameter of the module has changed since the first update:
    `unmoved_updates`. The step is `trainer.global_step`. Ends the training when Trackway requests a stop. The loop
    never waits for the device.

    Checkpoints that Lightning has written itself are reported, so that they are committed at once.

    With `trackway.lightning.TrackwayCheckpointIO` among the plugins it also saves: by the cadence of the run file, on
    request and before a stop. The errors of these saves are raised."""

    def __init__(self, run: Run | None = None):
        super().__init__(run)
        self._step = 0
        self._found: dict[str, Any] = {}

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        self._follow_saves(trainer)
        # One run for both: what saves must know what requests a stop.
        if (io := storage_of(trainer)) is not None:
            self._run = io.join(self._run)
            if io.session.saves and saves_by_itself(trainer.strategy):
                name = type(trainer.strategy).__name__
                raise InputError(f"{name} does not save through plugins: remove TrackwayCheckpointIO, or use trackway.dcp")

    @quiet
    def _follow_saves(self, trainer: Any) -> None:
        """Reports the files that Lightning's own plugin has written; one that writes in the background reports nothing."""
        io: Any = getattr(trainer.strategy, "checkpoint_io", None)
        if type(io) is not TorchCheckpointIO or "save_checkpoint" in vars(io):
            return
        save = io.save_checkpoint

        def reporting(checkpoint: Any, path: Any, *rest: Any, **named: Any) -> None:
            save(checkpoint, path, *rest, **named)
            self._saved(path, checkpoint)

        io.save_checkpoint = reporting  # type: ignore[method-assign]

    @quiet
    def _saved(self, path: Any, checkpoint: Any) -> None:
        self.run.wrote_checkpoint(path, step=int(checkpoint["global_step"]))

    @quiet
    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._step = trainer.global_step

    @quiet
    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        self.run.epochs_finished(trainer.current_epoch)
        self.begin()

    @quiet
    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, index: int) -> None:
        self.waited()
        if self._began is None:
            # Lightning does not start an epoch where a training continues at the end of one.
            self.run.epochs_finished(trainer.current_epoch)
            self.begin()
        self.take(batch)

    @quiet
    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        self.updates_begin(lambda: fingerprint(module.parameters()))
        self.movement.updates += 1
        found = {"learning_rate": learning_rate(optimizer), **gradient_metrics(gradients_of(optimizer))}
        self._found = {**found, **self.update()}

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, index: int) -> None:
        updated = trainer.global_step != self._step
        self._batch_ended(trainer, module, outputs)
        if updated and (io := storage_of(trainer)) is not None and io.run.checkpoint_due(trainer.global_step):
            trainer.save_checkpoint(os.path.join(trainer.default_root_dir, POINTER_NAME))

    @quiet
    def _batch_ended(self, trainer: Any, module: Any, outputs: Any) -> None:
        if trainer.global_step != self._step:
            self._step = trainer.global_step
            self._record(trainer, module, outputs)
        self.run.epochs_finished(trainer.current_epoch + bool(trainer.is_last_batch))
        if self.run.should_stop():
            trainer.should_stop = True

    def _record(self, trainer: Any, module: Any, outputs: Any) -> None:
        found = {**self.measured(), **self._found}
        self._found = {}
        found |= self.unmoved(lambda: fingerprint(module.parameters()))
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if isinstance(loss, torch.Tensor):
            found["loss"] = loss
        if (scaler := getattr(trainer.precision_plugin, "scaler", None)) is not None:
            found["loss_scale"] = getattr(scaler, "_scale", None)
        found |= device_memory(self)
        self.record(self._step, *apart(found))

    @quiet
    def on_validation_start(self, trainer: Any, module: Any) -> None:
        self.pause()

    @quiet
    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if not trainer.sanity_checking:
            self.record(trainer.global_step, *apart(trainer.callback_metrics))

    def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: Any) -> None:
        self._saves()
        if (io := storage_of(trainer)) is not None:
            io.accompany(trainer.global_step)

    @quiet
    def _saves(self) -> None:
        self.pause()

    @quiet
    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self.land_all()

    @quiet
    def on_train_end(self, trainer: Any, module: Any) -> None:
        self.land_all()
