"""Keras 3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from zlib import crc32

import keras
import numpy

from ._watch import Movement, Watch, quiet

if TYPE_CHECKING:
    from .._run.run import Run

# Under these names the values of a step leave the compiled function; only this module sees them.
_PREFIX = "trackway_"


class KerasCallback(Watch, keras.callbacks.Callback):  # type: ignore[misc]
    """Records a training with Keras 3: `model.fit(..., callbacks=[trackway.callbacks.KerasCallback()])`.

    With the JAX backend, at each step: the batch `loss`, `grad_norm`, `nonfinite_gradients`, `step_seconds`,
    `batch_wait_seconds`, `samples_per_second`, `batch_digest`, `input_digest`. The gradients are inspected within the
    compiled step, and its result is recorded when it has arrived: the loop never waits for the device. With every
    backend, at the end of an epoch: the logs of Keras, such as `val_loss` and, as `epoch_loss`, the mean of the epoch,
    and `learning_rate`; while no trainable variable has changed since the beginning, `unmoved_updates`. The step is
    that of the optimizer. Files that `ModelCheckpoint` has written are reported, so that they are committed at once.
    Ends the training when Trackway requests a stop."""

    def __init__(self, run: Run | None = None):
        super().__init__(run)
        keras.callbacks.Callback.__init__(self)
        self._steps = 0
        self._updates_before = 0
        self._undo: list[Callable[[], None]] = []

    @quiet
    def on_train_begin(self, logs: Any = None) -> None:
        self._steps = self._updates_before = int(self.model.optimizer.iterations)
        self._report_saves()
        self.movement: Movement = Movement()
        self.updates_begin(self._fingerprint)
        if keras.backend.backend() == "jax":
            self._look_into_steps()

    @quiet
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.run.epochs_finished(epoch)
        self.begin()

    @quiet
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self.run.should_stop():
            self._model.stop_training = True

    @quiet
    def on_test_begin(self, logs: Any = None) -> None:
        self.pause()

    @quiet
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.pause()
        reported = {"epoch_loss" if name == "loss" else name: value for name, value in (logs or {}).items()}
        rate = keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)
        self.movement.updates = int(self.model.optimizer.iterations) - self._updates_before
        self.record(self._steps, {"learning_rate": float(rate), **self.unmoved(self._fingerprint), **reported})
        self.run.epochs_finished(epoch + 1)

    def _fingerprint(self) -> Any:
        """A digest of each trainable variable. They are copied to the host one after the other."""
        values = (keras.ops.convert_to_numpy(one) for one in self.model.trainable_variables)
        digests = [crc32(numpy.ascontiguousarray(one).tobytes()) for one in values]
        return numpy.array(digests) if digests else None

    @quiet
    def on_train_end(self, logs: Any = None) -> None:
        self.land_all()
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    def _report_saves(self) -> None:
        """Reports the files that `ModelCheckpoint` and others save, once they are written."""
        for name in ("save", "save_weights"):
            save = getattr(self.model, name)

            def reporting(filepath: Any, *rest: Any, _save: Any = save, **named: Any) -> Any:
                done = _save(filepath, *rest, **named)
                self._saved(filepath)
                return done

            self._exchange(self.model, name, reporting)

    @quiet
    def _saved(self, path: Any) -> None:
        self.run.wrote_checkpoint(path, step=int(self._model.optimizer.iterations))

    # Within the compiled step. In an epoch `self.model` would bring the state back from JAX; `self._model` does not.

    def _look_into_steps(self) -> None:
        """Makes the compiled step also return the loss of its batch and its gradient metrics, and removes these from
        the result before Keras sees it."""
        model = self.model
        step, apply, tracker = model.train_step, model.optimizer.stateless_apply, model._loss_tracker
        update = tracker.update_state
        traced: dict[str, Any] = {}

        def watched_apply(variables: Any, gradients: Any, *rest: Any, **named: Any) -> Any:
            from .jax import gradient_metrics

            traced.update(gradient_metrics(gradients))
            return apply(variables, gradients, *rest, **named)

        def watched_update(values: Any, *rest: Any, **named: Any) -> Any:
            traced["loss"] = values
            return update(values, *rest, **named)

        def watched_step(state: Any, data: Any) -> Any:
            traced.clear()
            # Only while the step is traced: an evaluation has the same tracker.
            tracker.update_state = watched_update
            try:
                logs, state = step(state, data)
            finally:
                tracker.update_state = update
            return {**logs, **{_PREFIX + name: value for name, value in traced.items()}}, state

        self._exchange(model, "train_step", watched_step)
        self._exchange(model.optimizer, "stateless_apply", watched_apply)
        model.make_train_function(force=True)  # one that was compiled before does not look
        self._undo.append(lambda: setattr(model, "train_function", None))
        compiled = model.train_function

        def train_function(state: Any, iterator: Iterator[Any]) -> Any:
            logs, state = compiled(state, self._timed(iterator))
            found = {name.removeprefix(_PREFIX): logs.pop(name) for name in list(logs) if name.startswith(_PREFIX)}
            self._step_ends(found)
            return logs, state

        model.train_function = train_function

    def _exchange(self, owner: Any, name: str, value: Any) -> None:
        setattr(owner, name, value)
        self._undo.append(lambda: delattr(owner, name))

    def _timed(self, iterator: Iterator[Any]) -> Iterator[Any]:
        return self.measured_batches(iterator, lambda batch: batch)

    @quiet
    def _step_ends(self, found: Mapping[str, Any]) -> None:
        from .jax import apart

        self._steps += self._model.steps_per_execution
        self.record(self._steps, *apart({**self.measured(), **found}))
