"""scikit-learn: estimators with callbacks (1.9 or newer), and gradient boosting with `monitor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._watch import Watch, quiet

if TYPE_CHECKING:
    from .._run.run import Run


class SklearnCallback(Watch):
    """Records a fit of scikit-learn.

        LogisticRegression().set_callbacks(trackway.callbacks.SklearnCallback()).fit(x, y)
        GradientBoostingClassifier().fit(x, y, monitor=trackway.callbacks.SklearnCallback())

    For an estimator with callbacks (scikit-learn 1.9 or newer), each innermost task of the fit, such as an iteration of
    a solver, is a step with its `step_seconds`; each outer task, such as a candidate of a search or a part of a
    pipeline, is an event `fit_task`. As a `monitor`: `step_seconds`, `loss` and, with `subsample` below 1,
    `oob_improvement` of each tree. Both end the fit when Trackway requests a stop. For estimators with `partial_fit`,
    call `run.log` in your loop."""

    def __init__(self, run: Run | None = None):
        super().__init__(run)
        self._steps = 0

    # The protocol of scikit-learn's callbacks

    @quiet
    def setup(self, estimator: Any, context: Any) -> None:
        self.begin()

    @quiet
    def teardown(self, estimator: Any, context: Any) -> None:
        self.pause()

    @quiet
    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Records nothing; the protocol requires the method."""

    @quiet
    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        if context.max_subtasks == 0:
            self._steps += 1
            self.record(self._steps, self.measured())
        else:
            reported = {"estimator": context.estimator_name, "task": context.task_name, "number": context.task_id}
            self.run.event("fit_task", step=self._steps, **reported)
        return bool(self.run.should_stop())

    # The `monitor` of gradient boosting

    @quiet
    def __call__(self, number: int, estimator: Any, names: Any) -> bool:
        """Called after each tree. `names` are the local variables of the fit."""
        values = self.measured(samples=len(names["X"]) if "X" in names else None)
        values["loss"] = estimator.train_score_[number]
        if hasattr(estimator, "oob_improvement_"):
            values["oob_improvement"] = estimator.oob_improvement_[number]
        self.record(number + 1, values)
        return bool(self.run.should_stop())
