"""A script that records with Weights & Biases, in Trackway: `import trackway.compat.wandb as wandb`.

`config` becomes parameters, what is logged metrics, tags tags, and files artifacts of the run. Values are in the record when
a call returns. Charts, images and tables are left out, in one line for each kind.
"""

from __future__ import annotations

import glob
import os
import secrets
import threading
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from types import SimpleNamespace, TracebackType
from typing import Any

from . import _shared

TOOL = "wandb"

__all__ = [
    "Artifact", "Audio", "Config", "Error", "Graph", "Histogram", "Html", "Image", "Molecule", "Object3D", "Plotly", "Run",
    "Settings", "Table", "UsageError", "Video", "alert", "define_metric", "finish", "init", "log", "log_artifact", "login",
    "plot", "save", "unwatch", "util", "watch",
]  # fmt: skip

# What `__getattr__` gives, since it depends on the run that has begun.
OF_THE_RUN = ("config", "run", "summary")

# Arguments of `init` that have no effect here.
WITHOUT_EFFECT = {
    "allow_val_change", "anonymous", "config_exclude_keys", "config_include_keys", "dir", "entity", "force", "fork_from", "id",
    "magic", "monitor_gym", "resume", "resume_from", "save_code", "settings", "sync_tensorboard",
}  # fmt: skip


class Error(Exception):
    """A call that is not possible now, such as `log` before `init`."""


UsageError = Error


class Config(MutableMapping[str, Any]):
    """The settings of a run, by attribute or by item; each is a parameter, with dots in the names of nested ones."""

    def __init__(self, record: Any):
        object.__setattr__(self, "_record", record)
        object.__setattr__(self, "_values", {})

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._values[name] = value
        for below, leaf in _shared.flat({name: value}):
            self._record(below, leaf)

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"no `{name}` is set") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def update(self, values: Any = (), /, allow_val_change: bool | None = None, **named: Any) -> None:
        """Sets all values of a dict, of an `argparse.Namespace` or of another object with attributes."""
        given = _shared.as_mapping(values) if values != () else {}
        if given is None:
            _shared.say_once(f"config {type(values)}", TOOL, f"settings in a {type(values).__name__} are not read: pass a dict")
        for name, value in {**(given or {}), **named}.items():
            self[str(name)] = value

    def setdefaults(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            self.setdefault(name, value)

    def as_dict(self) -> dict[str, Any]:
        return dict(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


class Media:
    """What is not recorded: an image, a table, a chart. It takes any arguments."""

    def __init__(self, *_arguments: Any, **_named: Any):
        pass


class Image(Media): ...


class Audio(Media): ...


class Video(Media): ...


class Html(Media): ...


class Histogram(Media): ...


class Object3D(Media): ...


class Molecule(Media): ...


class Plotly(Media): ...


class Graph(Media): ...


class Table(Media):
    """A table; its rows are not kept."""

    def add_data(self, *_values: Any) -> None: ...

    def add_column(self, *_arguments: Any, **_named: Any) -> None: ...


class Settings:
    """Settings of the tool, which have no effect here."""

    def __init__(self, **named: Any):
        self.__dict__.update(named)


class _Plots:
    """`wandb.plot`: charts, which are not recorded."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Graph


plot: _Plots = _Plots()
util: SimpleNamespace = SimpleNamespace(generate_id=lambda length=8: secrets.token_hex(length)[:length])


class Artifact:
    """Named files, which `log_artifact` stores as `NAME/FILE`."""

    def __init__(
        self, name: str, type: str, description: str | None = None, metadata: Mapping[str, Any] | None = None, **_more: Any
    ):
        self.name: str = name
        self.type: str = type
        self.description: str | None = description
        self.metadata: dict[str, Any] = dict(metadata or {})
        self._files: list[tuple[str, str]] = []

    def add_file(self, local_path: str | os.PathLike[str], name: str | None = None, **_more: Any) -> None:
        path = os.fspath(local_path)
        if not os.path.isfile(path):
            raise ValueError(f"`{path}` is not a file")
        self._files.append((path, name or os.path.basename(path)))

    def add_dir(self, local_path: str | os.PathLike[str], name: str | None = None, **_more: Any) -> None:
        path = os.fspath(local_path)
        if not os.path.isdir(path):
            raise ValueError(f"`{path}` is not a folder")
        self._files.append((path, name or ""))

    def add(self, _obj: Any, name: str) -> None:
        _shared.say_once("Artifact.add", TOOL, f"`{name}` is not stored: only files and folders of an Artifact are")

    def add_reference(self, uri: str, *_arguments: Any, **_named: Any) -> None:
        _shared.say_once("Artifact.add_reference", TOOL, f"the reference to `{uri}` is not recorded")

    def wait(self, timeout: int | None = None) -> Artifact:
        return self


class Run:
    """A run of the tool; created by `init()`."""

    def __init__(self, *, name: str | None, project: str | None, group: str | None, is_disabled: bool):
        self._to = None if is_disabled else _shared.run_of_process(TOOL)
        self._prefix = "" if is_disabled else _shared.prefix_of_next(TOOL, name)
        self._lock = threading.Lock()
        self._step = 0
        self.id: str = os.environ.get("TRACKWAY_ATTEMPT") or util.generate_id()
        self.name: str = name or self.id
        self.project: str | None = project
        self.group: str | None = group
        self.entity: str | None = None
        self.url: str | None = None
        self.tags: tuple[str, ...] = ()
        self.disabled = is_disabled
        self.config: Config = Config(self._param)
        self.summary: Config = Config(self._summarize)

    @property
    def step(self) -> int:
        """The step of the next values that are logged without one."""
        return self._step

    def log(self, data: Mapping[str, Any], step: Any = None, commit: bool | None = None, sync: bool | None = None) -> None:
        """Records values. Without `step` they are of the next one, which begins when a call is committed. A step may go back:
        then only these values are recorded there."""
        if not isinstance(data, Mapping):
            raise ValueError(f"wandb.log takes a dict, and got a {type(data).__name__}")
        given = None if step is None else _shared.step_of(step)
        if step is not None and given is None:
            _shared.say_once("step", TOOL, f"values at the step {step!r} are not recorded: a step is a whole number from 0 on")
            return
        with self._lock:
            at = self._step if given is None else given
            is_over = commit if commit is not None else given is None
            self._step = max(self._step, at + 1 if is_over else at)
        self._record(at, data)

    def _record(self, step: int, data: Mapping[str, Any]) -> None:
        numbers = {}
        for name, value in _shared.flat(data):
            number = _shared.number_of(value)
            if number is None:
                _leave_out(name, value)
            else:
                numbers[name] = number
        self.summary._values.update(numbers)
        if self._to is not None and numbers:
            self._to.log(step, {self._prefix + name: number for name, number in numbers.items()})

    def _param(self, name: str, value: Any) -> None:
        if self._to is not None:
            self._to.param(self._prefix + name, _shared.json_text(value))

    def _tag(self, name: str, value: Any) -> None:
        if self._to is not None:
            self._to.tag(self._prefix + name, value)

    def _summarize(self, name: str, value: Any) -> None:
        number = _shared.number_of(value)
        if number is not None and self._to is not None:
            self._to.log(self._step, {self._prefix + name: number})
        elif isinstance(value, str):
            self._tag(name, value)
        elif number is None:
            _leave_out(name, value)

    def define_metric(self, name: str, step_metric: Any = None, **_more: Any) -> None:
        """Has no effect: every metric has its steps, and its minimum, maximum and last value (`trackway runs --sort min.loss`)."""
        if step_metric is not None:
            _shared.say_once("define_metric", TOOL, f"define_metric: curves have the step of `log`, not `{step_metric}`")

    def watch(self, *_arguments: Any, **_named: Any) -> None:
        """Has no effect."""
        _shared.say_once("watch", TOOL, "watch records nothing; gradients: trackway.callbacks.TorchLoop")

    def unwatch(self, *_arguments: Any, **_named: Any) -> None:
        """Has no effect, as `watch`."""

    def log_artifact(
        self,
        artifact_or_path: Artifact | str | os.PathLike[str],
        name: str | None = None,
        type: str | None = None,
        aliases: Sequence[str] | None = None,
        **_more: Any,
    ) -> Artifact:
        """Stores the files of an Artifact, a file or a folder."""
        artifact = artifact_or_path
        if not isinstance(artifact, Artifact):
            path = os.fspath(artifact)
            artifact = Artifact(name or os.path.basename(os.path.abspath(path)), type or "unspecified")
            artifact.add_dir(path) if os.path.isdir(path) else artifact.add_file(path)
        if self._to is not None:
            for path, below in artifact._files:
                _shared.keep_file(self._to, path, self._prefix + "/".join(filter(None, (artifact.name, below))))
            texts = {"aliases": list(aliases or ()), "metadata": artifact.metadata, "description": artifact.description}
            given: dict[str, Any] = {key: _shared.json_text(value) for key, value in texts.items() if value}
            self._to.event("artifact_details", name=self._prefix + artifact.name, type=artifact.type, **given)
        return artifact

    def save(self, glob_str: str | os.PathLike[str], *_arguments: Any, **_named: Any) -> list[str]:
        """Stores the files that match a pattern; returns them."""
        found = sorted(glob.glob(os.fspath(glob_str), recursive=True))
        if not found:
            _shared.say_once(f"save {glob_str}", TOOL, f"save: no file matches `{glob_str}`")
        for path in found:
            if self._to is not None:
                _shared.keep_file(self._to, path, self._prefix + os.path.basename(os.path.abspath(path)))
        return found

    def alert(self, title: str, text: str = "", level: Any = "INFO", **_more: Any) -> None:
        """Records an event `alert`."""
        if self._to is not None:
            self._to.event("alert", title=title, text=text, level=level)

    def finish(self, exit_code: int | None = None, quiet: bool | None = None) -> None:
        """Waits until all files are stored."""
        global _run
        if self._to is not None:
            if exit_code:
                self._to.event("reported_exit_code", exit_code=exit_code)
            self._to.finish()
        if _run is self:
            _run = None

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and self._to is not None:
            self._to.exception(error)
        self.finish()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a run has no {name!r}; it has {', '.join(_names_of_run())} ({_shared.DOCS})")


def _names_of_run() -> list[str]:
    own = ["config", "disabled", "group", "id", "name", "project", "summary", "tags", "url"]
    return sorted([*own, *(name for name in vars(Run) if not name.startswith("_"))])


def _leave_out(name: str, value: Any) -> None:
    kind = type(value).__name__
    _shared.say_once(f"value {kind}", TOOL, f"`{name}` is not recorded: a value of the type {kind} is not a number")


_run: Run | None = None
_beginning = threading.Lock()


def init(
    project: str | None = None,
    *,
    name: str | None = None,
    config: Any = None,
    tags: Sequence[str] | str | None = None,
    notes: str | None = None,
    group: str | None = None,
    job_type: str | None = None,
    mode: str | None = None,
    reinit: bool | str | None = None,
    **more: Any,
) -> Run:
    """Begins a run. Settings are parameters; labels are tags with the value `true`; project, name, group, job type and notes
    are tags too. With `mode="disabled"`, or `WANDB_MODE=disabled`, nothing is recorded. A run that has begun is returned
    again; with `reinit` it is finished, and another one begins."""
    global _run
    if unexpected := more.keys() - WITHOUT_EFFECT:
        raise TypeError(f"init() got an unexpected keyword argument {sorted(unexpected)[0]!r}")
    if ignored := sorted(key for key, value in more.items() if value not in (None, False)):
        _shared.say_once("init", TOOL, f"init: {', '.join(f'`{key}`' for key in ignored)} has no effect")
    if _run is not None and reinit in (True, "finish_previous"):
        _run.finish()
    with _beginning:
        if _run is None:
            is_disabled = (mode or os.environ.get("WANDB_MODE")) == "disabled"
            _run = Run(name=name, project=project, group=group, is_disabled=is_disabled)
        begun = _run
    labels = (tags,) if isinstance(tags, str) else tuple(tags or ())
    begun.tags = (*begun.tags, *labels)
    named = {"project": project, "run_name": name, "group": group, "job_type": job_type, "notes": notes}
    for key, value in {**named, **dict.fromkeys(labels, "true")}.items():
        if value is not None:
            begun._tag(key, value)
    if config is not None:
        begun.config.update(config)
    return begun


def login(*_arguments: Any, **_named: Any) -> bool:
    """Nothing to log in to."""
    return True


def _current(call: str) -> Run:
    if _run is None:
        raise Error(f"call wandb.init() before wandb.{call}")
    return _run


def log(data: Mapping[str, Any], step: Any = None, commit: bool | None = None, sync: bool | None = None) -> None:
    _current("log()").log(data, step, commit, sync)


def define_metric(name: str, *arguments: Any, **named: Any) -> None:
    _current("define_metric()").define_metric(name, *arguments, **named)


def watch(*arguments: Any, **named: Any) -> None:
    _current("watch()").watch(*arguments, **named)


def unwatch(*_arguments: Any, **_named: Any) -> None:
    """Has no effect, as `watch`."""


def log_artifact(artifact_or_path: Artifact | str | os.PathLike[str], **named: Any) -> Artifact:
    return _current("log_artifact()").log_artifact(artifact_or_path, **named)


def save(glob_str: str | os.PathLike[str], *arguments: Any, **named: Any) -> list[str]:
    return _current("save()").save(glob_str, *arguments, **named)


def alert(title: str, text: str = "", level: Any = "INFO", **named: Any) -> None:
    _current("alert()").alert(title, text, level, **named)


def finish(exit_code: int | None = None, quiet: bool | None = None) -> None:
    """Ends the run; does nothing without one."""
    if _run is not None:
        _run.finish(exit_code)


class _Before:
    """`wandb.config` and `wandb.summary` before `init()`."""

    def __init__(self, name: str):
        object.__setattr__(self, "_name", name)

    def _refuse(self, *_arguments: Any) -> Any:
        _current(object.__getattribute__(self, "_name"))

    __getattr__ = __setattr__ = __getitem__ = __setitem__ = _refuse


def __getattr__(name: str) -> Any:
    if name == "run":
        return _run
    if name in ("config", "summary"):
        return getattr(_run, name) if _run is not None else _Before(name)
    raise _shared.unknown(__name__, name, [*__all__, *OF_THE_RUN])
