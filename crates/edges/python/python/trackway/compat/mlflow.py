"""A script that records with MLflow, in Trackway: `import trackway.compat.mlflow as mlflow`.

Parameters, metrics, tags and files are those of the run of Trackway. They are in the record when a call returns.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Mapping
from types import SimpleNamespace, TracebackType
from typing import Any

from . import _shared

TOOL = "mlflow"

__all__ = [
    "ActiveRun", "MlflowException", "active_run", "autolog", "end_run", "last_active_run", "log_artifact", "log_artifacts",
    "log_dict", "log_metric", "log_metrics", "log_param", "log_params", "log_text", "set_experiment", "set_registry_uri",
    "set_tag", "set_tags", "set_tracking_uri", "start_run",
]  # fmt: skip


class MlflowException(Exception):
    """A call that is not possible now, such as a second run beside an active one."""


class ActiveRun:
    """A run of the tool; created by `start_run()`. As a context manager it ends with its block."""

    def __init__(self, name: str | None, prefix: str):
        self._to = _shared.run_of_process(TOOL)
        self._prefix = prefix
        self._next_steps: dict[str, int] = {}
        identity = os.environ.get("TRACKWAY_ATTEMPT", "")
        # The same fields as in the tool, as far as a script needs them.
        self.info: SimpleNamespace = SimpleNamespace(
            run_id=identity, run_name=name or identity, status="RUNNING", experiment_id="0"
        )
        self.data: SimpleNamespace = SimpleNamespace(params={}, metrics={}, tags={})

    def _param(self, key: Any, value: Any) -> None:
        self.data.params[str(key)] = str(value)
        self._to.param(f"{self._prefix}{key}", value)

    def _metric(self, key: Any, value: Any, step: Any) -> None:
        name, number = str(key), _shared.number_of(value)
        if number is None:
            raise MlflowException(f"the value of the metric `{name}` is {value!r}, which is not a number")
        at = _shared.step_of(step) if step is not None else None
        if step is not None and at is None:
            raise MlflowException(f"the step of the metric `{name}` is {step!r}; it must be a whole number from 0 on")
        with _lock:
            at = self._next_steps.get(name, 0) if at is None else at
            self._next_steps[name] = at + 1
            self.data.metrics[name] = number
        self._to.log(at, {self._prefix + name: number})

    def _tag(self, key: Any, value: Any) -> None:
        self.data.tags[str(key)] = str(value)
        self._to.tag(f"{self._prefix}{key}", value)

    def _end(self, status: str) -> None:
        self.info.status = status
        if status not in ("FINISHED", "RUNNING"):
            self._to.event("reported_status", status=status)

    def __enter__(self) -> ActiveRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._to.exception(error)
        while self in _active:
            end_run("FAILED" if error is not None and _active[-1] is self else "FINISHED")


_lock = threading.Lock()
# The run that is active, on top of those in which it is nested; of all threads together.
_active: list[ActiveRun] = []
_last: ActiveRun | None = None
_experiment: str | None = None


def set_experiment(experiment_name: str | None = None, experiment_id: str | None = None, **_more: Any) -> Any:
    """Names the experiment of the runs that begin afterwards: their tag `experiment`."""
    global _experiment
    _experiment = experiment_name or experiment_id
    if _active and _experiment is not None:
        _active[-1]._tag("experiment", _experiment)
    return SimpleNamespace(name=_experiment, experiment_id=experiment_id or "0")


def start_run(
    run_id: str | None = None,
    experiment_id: str | None = None,
    run_name: str | None = None,
    nested: bool = False,
    tags: Mapping[str, Any] | None = None,
    description: str | None = None,
    **_more: Any,
) -> ActiveRun:
    """Begins a run. A process is one run of Trackway: the names of nested runs and of those after the first begin with the name of
    that run.

    Raises MlflowException if another run is active and `nested` is false."""
    global _last
    if run_id is not None:
        _shared.say_once("run_id", TOOL, "start_run: `run_id` has no effect; a retry of Trackway continues the same run")
    if _active and not nested:
        raise MlflowException("a run is active: end it with mlflow.end_run(), or begin this one with nested=True")
    begun = ActiveRun(run_name, _shared.prefix_of_next(TOOL, run_name))
    with _lock:
        _active.append(begun)
        _last = begun
    named = {"experiment": _experiment or experiment_id, "run_name": run_name, "description": description}
    for key, value in {**named, **(tags or {})}.items():
        if value is not None:
            begun._tag(key, value)
    return begun


def active_run() -> ActiveRun | None:
    """The run that is active, of any thread."""
    return _active[-1] if _active else None


def last_active_run() -> ActiveRun | None:
    """The run that began last."""
    return _last


def end_run(status: str = "FINISHED") -> None:
    """Ends the active run; does nothing without one."""
    with _lock:
        ended = _active.pop() if _active else None
    if ended is not None:
        ended._end(status)


def _current() -> ActiveRun:
    """The active run; as in the tool, one begins if none is active."""
    return active_run() or start_run()


def log_param(key: str, value: Any, **_more: Any) -> Any:
    _current()._param(key, value)
    return value


def log_params(params: Mapping[str, Any], **_more: Any) -> None:
    run = _current()
    for key, value in params.items():
        run._param(key, value)


def log_metric(key: str, value: Any, step: Any = None, **_more: Any) -> None:
    """Records a value. Without `step` each value of a metric is at the next one, from 0 on."""
    _current()._metric(key, value, step)


def log_metrics(metrics: Mapping[str, Any], step: Any = None, **_more: Any) -> None:
    run = _current()
    for key, value in metrics.items():
        run._metric(key, value, step)


def set_tag(key: str, value: Any, **_more: Any) -> None:
    _current()._tag(key, value)


def set_tags(tags: Mapping[str, Any], **_more: Any) -> None:
    run = _current()
    for key, value in tags.items():
        run._tag(key, value)


def log_artifact(local_path: str | os.PathLike[str], artifact_path: str | None = None, **_more: Any) -> None:
    """Stores a file, or a folder, as `ARTIFACT_PATH/NAME`."""
    name = os.path.basename(os.path.abspath(os.fspath(local_path)))
    _keep(local_path, "/".join(filter(None, (artifact_path, name))))


def log_artifacts(local_dir: str | os.PathLike[str], artifact_path: str | None = None, **_more: Any) -> None:
    """Stores the files of a folder, as `ARTIFACT_PATH/…`, else under the name of the folder."""
    _keep(local_dir, artifact_path or os.path.basename(os.path.abspath(os.fspath(local_dir))))


def _keep(path: str | os.PathLike[str], name: str) -> None:
    run = _current()
    _shared.keep_file(run._to, path, run._prefix + name)


def log_text(text: str, artifact_file: str, **_more: Any) -> None:
    """Stores a text as a file."""
    with tempfile.TemporaryDirectory(prefix="trackway-") as folder:
        path = os.path.join(folder, "text")
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        # It is open when this returns, and copied from there.
        _keep(path, artifact_file)


def log_dict(dictionary: Any, artifact_file: str, **_more: Any) -> None:
    """Stores a dict as JSON, whatever the name of the file: YAML contains JSON."""
    log_text(json.dumps(dictionary, indent=2, default=str) + "\n", artifact_file)


def autolog(*_arguments: Any, **_named: Any) -> None:
    """Records nothing: one line names what does."""
    _shared.say_once(
        "autolog", TOOL, "autolog records nothing; trackway.callbacks has a callback for each framework (docs/python.md)"
    )


def set_tracking_uri(uri: Any) -> None:
    """Has no effect."""
    _shared.say_once("tracking", TOOL, f"set_tracking_uri: `{uri}` is not used, everything is recorded in Trackway")


def set_registry_uri(uri: Any) -> None:
    """Has no effect."""
    _shared.say_once("registry", TOOL, f"set_registry_uri: `{uri}` is not used; models: run.save_model(path), trackway registry")


def __getattr__(name: str) -> Any:
    models = "; models: run.save_model(path)" if "model" in name or name in ("sklearn", "pytorch", "xgboost", "lightgbm") else ""
    raise _shared.unknown(__name__, name, __all__, models)
