"""The files of a model that a library wrote itself, and their names in a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from .._trackway import stored_names
from ..errors import InputError
from .state import files_of

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

# The most files of one model.
FILES_MAX = 10_000


def model_files(paths: Paths, name: str | None = None) -> list[tuple[str, str]]:
    """The name in the checkpoint and the path of each file; of a folder, of all files in it, whose names are their
    paths below it. `name` is that of a single file, and what the names of several begin with.

    Raises InputError for a path that cannot be stored."""
    places = [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    found = [file for place in places for file in _files_at(place)]
    if not found:
        raise InputError(f"no file to save in {_listed(places)}")
    if len(found) > FILES_MAX:
        raise InputError(f"{len(found)} files in {_listed(places)}; at most {FILES_MAX} can be saved as one model")
    below, at = zip(*found, strict=True)
    if name is not None and os.path.isfile(places[0]) and len(places) == 1:
        return [(name, at[0])]
    named = below if name is None else [f"{name}/{path}" for path in below]
    return list(zip(stored_names(list(named)), at, strict=True))


def refuse_names_of(components: Iterable[str], files: Iterable[tuple[str, str]]) -> None:
    """Raises InputError if a file has the name of one in which a component of the training state is stored."""
    for component in components:
        own = files_of(component)
        for name, path in files:
            if name == f"{component}.json" or own.fullmatch(name):
                raise InputError(f"`{path}`: a file of the component `{component}` is called `{name}`; pass another `name`")


def _files_at(place: str) -> Iterator[tuple[str, str]]:
    """The path below the folder and the whole path of each file."""
    if os.path.isfile(place):
        yield os.path.basename(place), os.path.abspath(place)
        return
    if not os.path.isdir(place):
        raise InputError(f"`{place}` is not a file or folder: save the model before `save_model`")
    for folder, folders, names in os.walk(place):
        folders.sort()
        if linked := [one for one in folders if os.path.islink(os.path.join(folder, one))]:
            raise InputError(f"`{os.path.join(folder, linked[0])}` is a link to a folder: pass its files themselves")
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not os.path.isfile(path):
                raise InputError(f"`{path}` is not a regular file")
            yield os.path.relpath(path, place), os.path.abspath(path)


def _listed(places: list[str]) -> str:
    return ", ".join(f"`{place}`" for place in places[:3]) + (", …" if len(places) > 3 else "")
