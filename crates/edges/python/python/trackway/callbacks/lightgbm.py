"""LightGBM."""

from __future__ import annotations

from typing import Any

from lightgbm.callback import EarlyStopException

from ._boosting import named_alike
from ._watch import Watch, quiet


class LightGBMCallback(Watch):
    """Records a training with LightGBM: `lightgbm.train(..., valid_sets=[train, test], valid_names=["train", "test"],
    callbacks=[trackway.callbacks.LightGBMCallback()])`.

    After each round: `step_seconds`, each evaluation as `DATA_METRIC`, and the first metric for which lower is better
    as `loss` (data named `training` or `train`) and `val_loss` (the first other data); `learning_rate`. Ends the
    training when Trackway requests a stop, as early stopping does."""

    # After LightGBM's own callbacks that change parameters, before the one that stops early.
    order = 20
    before_iteration = False

    def __call__(self, env: Any) -> None:
        if self._round(env):
            raise EarlyStopException(env.iteration, list(env.evaluation_result_list or []))

    @quiet
    def _round(self, env: Any) -> bool:
        results = env.evaluation_result_list or []
        reported = [(one[0], one[1], float(one[2]), bool(one[3])) for one in results]
        values = {**self.measured(), **named_alike(reported, len({one[0] for one in reported}) == 1)}
        if (rate := env.params.get("learning_rate")) is not None:
            values["learning_rate"] = rate
        self.record(env.iteration + 1, values)
        return bool(self.run.should_stop())
