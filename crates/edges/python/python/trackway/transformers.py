"""The checkpoints of Hugging Face's Trainer through Trackway, with one line changed:

    from trackway.transformers import Trainer          # instead of: from transformers import Trainer

or, for a subclass of another Trainer, `class MyTrainer(trackway.transformers.TrackwayTrainerMixin, SFTTrainer)`.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Collection
from typing import Any

import transformers
from transformers.trainer_callback import ExportableState

from ._run.adapter import SaveSession, committed_in, load_step
from ._run.run import Run, attach
from ._state import state as _state
from ._state.ranks import FilesOf, Kept
from .errors import InputError

__all__ = ["TrackwayTrainerMixin", "Trainer"]

STATE_FILE = "trainer_state.json"


class TrackwayTrainerMixin:
    """Saves what a Trainer saves as checkpoints of the run, and resumes from the newest that verifies.

    When the Trainer saves (`save_strategy`, `save_steps`), and also by the cadence of the run file, on request and before
    a stop: the model, optimizer, scheduler, gradient scaler, the Trainer's state, and the random generators of each
    process. A save returns when everything is copied; it is written and committed in the background. The `keep` of the
    run file decides what is retained, not `save_total_limit`.

    `train()` resumes by itself: `resume_from_checkpoint` is only needed for a folder that was saved without Trackway.
    With `load_best_model_at_end` the best checkpoint must still be retained then: `keep = { best = "val_loss" }`.

    `save_only_model` and everything outside an attempt are saved as the Trainer does it. The Trainer's own FSDP and
    DeepSpeed are refused in an attempt: their states are distributed, see `trackway.dcp`.

    Raises the errors of `run.checkpoint()` and `run.resume()`."""

    _trackway_run: Run | None = None
    # The checkpoint that is being resumed, and its folder.
    _trackway_source: tuple[str, Kept] | None = None

    @property
    def run(self: Any) -> Run:
        """The run; that of a `TransformersCallback`, if there is one."""
        if self._trackway_run is None:
            from .callbacks.transformers import TransformersCallback

            observers = [one for one in self.callback_handler.callbacks if isinstance(one, TransformersCallback)]
            if observers:
                self._trackway_run = observers[0].run
            else:
                self._trackway_run = attach()
        run: Run = self._trackway_run
        return run

    @property
    def _trackway_session(self: Any) -> SaveSession:
        return SaveSession(self.run)

    def train(self: Any, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        """As `Trainer.train`, from the newest checkpoint of the run if there is one."""
        session = self._trackway_session
        if session.saves:
            if self.is_fsdp_enabled or self.is_deepspeed_enabled:
                raise InputError("the states of the Trainer's FSDP and DeepSpeed are distributed: save them with trackway.dcp")
            source = session.newest()
            if source is not None:
                resume_from_checkpoint = str(source.loaded.folder)
                self._trackway_source = (resume_from_checkpoint, source)
            elif resume_from_checkpoint is True:
                resume_from_checkpoint = None  # a first attempt has nothing yet
        try:
            found = super().train(resume_from_checkpoint, *args, **kwargs)  # type: ignore[misc]
        finally:
            self._trackway_source = None
        if session.saves:
            session.wait()
        return found

    # Saving

    def _maybe_log_save_evaluate(self: Any, *args: Any, **kwargs: Any) -> None:
        self.run.heartbeat(self.state.global_step)  # the epochs are those of this step
        self.run.epochs_finished(int(self.state.epoch or 0))
        if self._trackway_session.saves and self.run.checkpoint_due(self.state.global_step):
            self.control.should_save = True
        if self.run.should_stop():
            self.control.should_training_stop = True
        super()._maybe_log_save_evaluate(*args, **kwargs)  # type: ignore[misc]

    def _save_checkpoint(self: Any, model: Any, trial: Any) -> None:
        session, step = self._trackway_session, self.state.global_step
        if not session.saves or self.args.save_only_model:
            super()._save_checkpoint(model, trial)  # type: ignore[misc]
            return
        if step == session.saved_step or session.only_observes:
            return
        if self.hp_search_backend is None and trial is None:
            self.store_flos()
        if self.state.best_global_step:
            self.state.best_model_checkpoint = self._trackway_best()
        files = {STATE_FILE: self._trackway_state()} if session.rank == 0 else {}
        session.save(step, self._trackway_components(), files=files)

    def _trackway_components(self: Any) -> dict[str, Any]:
        optimizer = getattr(self.optimizer, "optimizer", self.optimizer)  # without the wrapper of Accelerate
        found = {"model": self.model, "optimizer": optimizer, "scheduler": self.lr_scheduler}
        scaler = getattr(self.accelerator, "scaler", None)
        return found if scaler is None else {**found, "scaler": scaler}

    def _trackway_state(self: Any) -> bytes:
        """The Trainer's state with that of its callbacks, as it writes it."""
        for one in [*self.callback_handler.callbacks, self.control]:
            if isinstance(one, ExportableState):
                name = type(one).__name__
                known = self.state.stateful_callbacks[name]
                if isinstance(known, list):
                    known.append(one.state())
                else:
                    self.state.stateful_callbacks[name] = one.state()
        # The best checkpoint is found by its step: a folder of that name would be missed when the state is read.
        state = {**dataclasses.asdict(self.state), "best_model_checkpoint": None}
        return (json.dumps(state, indent=2, sort_keys=True) + "\n").encode()

    # Resuming

    def _trackway_restore(self: Any, folder: str | None, names: Collection[str]) -> bool:
        """Whether a folder is the checkpoint that is resumed; then these components are restored, those that it has."""
        if self._trackway_source is None or folder != self._trackway_source[0]:
            return False
        stored = _state.Stored(FilesOf(self._trackway_source[1], 0))
        if "model" not in stored.names:
            step = self._trackway_source[1].loaded.step
            raise InputError(f"the checkpoint of step {step} was not saved by the Trainer through Trackway")
        components = self._trackway_components() if names != ("model",) else {"model": self.model}
        for name in names:
            if name in stored.names and name in components:
                stored.restore(name, components[name], models=[_state.unwrap(self.model)])
        return True

    def _load_from_checkpoint(self: Any, resume_from_checkpoint: str, model: Any = None) -> None:
        if not self._trackway_restore(resume_from_checkpoint, ("model",)):
            super()._load_from_checkpoint(resume_from_checkpoint, model)  # type: ignore[misc]

    def _load_optimizer_and_scheduler(self: Any, checkpoint: str | None) -> None:
        if not self._trackway_restore(checkpoint, ("optimizer", "scheduler")):
            super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[misc]

    def _load_scaler(self: Any, checkpoint: str | None) -> None:
        if not self._trackway_restore(checkpoint, ("scaler",)):
            super()._load_scaler(checkpoint)  # type: ignore[misc]

    def _load_rng_state(self: Any, checkpoint: str | None) -> None:
        if self._trackway_restore(checkpoint, ()):
            self._trackway_session.restore_place(self._trackway_source[1])
        else:
            super()._load_rng_state(checkpoint)  # type: ignore[misc]

    # The best model

    def _trackway_best(self: Any) -> str:
        """What the Trainer calls the best checkpoint; a folder of that name does not exist."""
        return os.path.join(self.args.output_dir, f"checkpoint-{self.state.best_global_step}")

    def _init_training_state(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = super()._init_training_state(*args, **kwargs)  # type: ignore[misc]
        if self._trackway_source is not None and self.state.best_global_step:
            self.state.best_model_checkpoint = self._trackway_best()
        self.run.epochs_finished(int(self.state.epoch or 0))
        return found

    def _load_best_model(self: Any) -> None:
        session, step = self._trackway_session, self.state.best_global_step
        if not session.saves or self.args.save_only_model or os.path.isdir(self.state.best_model_checkpoint):
            super()._load_best_model()  # type: ignore[misc]
            return
        session.wait()
        kept = load_step(session.root, step)
        if kept is None:
            raise InputError(
                f"`load_best_model_at_end` needs the checkpoint of step {step}, which was not retained; there are "
                f"{', '.join(str(one.step) for one in committed_in(session.root))}: set `keep = {{ best = \"…\" }}` in the run file"
            )
        _state.Stored(FilesOf(kept, 0)).restore("model", self.model)


class Trainer(TrackwayTrainerMixin, transformers.Trainer):
    """`transformers.Trainer`, whose checkpoints are those of the run."""
