"""XGBoost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xgboost.callback import TrainingCallback

from ._boosting import named_alike
from ._watch import Watch, quiet

if TYPE_CHECKING:
    from .._run.run import Run

# Metrics of which more is better, as XGBoost's own early stopping has them.
MORE_IS_BETTER = ("auc", "aucpr", "pre", "pre@", "map", "ndcg", "auc@", "aucpr@", "map@", "ndcg@")


class XGBoostCallback(Watch, TrainingCallback):
    """Records a training with XGBoost: `xgboost.train(..., evals=[(dtrain, "train"), (dtest, "test")], callbacks=[…])`,
    or `XGBClassifier(callbacks=[…])`.

    After each round: `step_seconds`, each evaluation as `DATA_METRIC`, and the first metric for which lower is better
    as `loss` (data named `train`) and `val_loss` (the first other data). Ends the training when Trackway requests a
    stop."""

    def __init__(self, run: Run | None = None):
        Watch.__init__(self, run)

    def before_training(self, model: Any) -> Any:
        self.begin()
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        return bool(self._round(epoch, evals_log))

    @quiet
    def _round(self, epoch: int, evals_log: Any) -> bool:
        reported = [
            (data, metric, _value(history[-1]), metric.split("@")[0] in MORE_IS_BETTER)
            for data, metrics in evals_log.items()
            for metric, history in metrics.items()
        ]
        self.record(epoch + 1, {**self.measured(), **named_alike(reported, len(evals_log) == 1)})
        return bool(self.run.should_stop())


def _value(reported: Any) -> float:
    """For cross-validation the mean, without the standard deviation."""
    return float(reported[0] if isinstance(reported, tuple) else reported)
