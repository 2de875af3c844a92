"""The package as a whole: its version, what importing it costs, how its modules depend on each other, and its metadata."""

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import trackway

HERE = Path(__file__).parents[1]
PACKAGE = HERE / "python/trackway"
# The modules that save or record for a framework.
CALLBACKS = [f"callbacks/{path.stem}" for path in (PACKAGE / "callbacks").glob("*.py")]
ADAPTERS = ["dcp", "lightning", "orbax", "transformers", *CALLBACKS]
# Milliseconds of a processor.
IMPORT_MAX = 40
# What costs more than it is worth in a script that only attaches.
HEAVY = {"dataclasses", "decimal", "hashlib", "inspect", "numpy", "pathlib", "random", "statistics", "subprocess", "torch"}


def test_the_version_is_that_of_the_wheel_and_of_the_command():
    """Proves that `__version__` is the version of the installed wheel, and of the workspace that the command is built from."""
    workspace = tomllib.loads((HERE / "../../../Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert trackway.__version__ == importlib.metadata.version("trackway")
    assert Version(trackway.__version__) == Version(workspace)


def in_a_new_process(code):
    return json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def test_importing_costs_next_to_nothing(monkeypatch):
    """Proves that importing takes no more time of a processor than promised, that it loads no other module, and that attaching
    outside an attempt loads neither a framework nor what is heavy in Python's library."""
    monkeypatch.delenv("TRACKWAY_ATTEMPT", raising=False)
    timed = "import time; began = time.process_time(); import trackway; print(1e3 * (time.process_time() - began))"
    assert min(in_a_new_process(timed) for _ in range(5)) <= IMPORT_MAX
    loaded = "import json, sys; before = {*sys.modules}; import trackway; %s; print(json.dumps([*{*sys.modules} - before]))"
    assert set(in_a_new_process(loaded % "0")) <= {"__future__", "trackway"}
    attached = set(in_a_new_process(loaded % "trackway.attach()"))
    assert "trackway._trackway" in attached and not attached & HEAVY


def test_every_public_name_is_there():
    """Proves that each name is found when it is used, is listed by `dir`, and is known to type checkers from the same module;
    an unknown name is an AttributeError, so that `hasattr` works."""
    for name in trackway.__all__:
        assert getattr(trackway, name) is not None and name in dir(trackway)
    assert not hasattr(trackway, "no_such_name") and "trackway" not in trackway.__all__
    (block,) = [
        node
        for node in ast.parse((PACKAGE / "__init__.py").read_text()).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    ]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    known = {(node.module, alias.name) for node in imports for alias in node.names}
    given = {(module, name) for module, names in trackway._NAMES.items() for name in names}
    assert known == given | {(None, name) for name in trackway._MODULES}


def imports_of(path):
    """The modules of the package that a file imports, by their names in it; those for type checkers and in functions too."""
    parent = ["trackway", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "trackway")
        elif isinstance(node, ast.ImportFrom):
            base = parent[: len(parent) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module.split(".")[0] == "trackway":
                # `from . import name` is the module of that name, `from .module import name` depends on the module.
                yield from (f"{module}.{alias.name}" for alias in node.names)
                yield module


def module_name(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(["trackway", *(part for part in parts if part != "__init__")])


def cycle_in(edges):
    """The names of a cycle; None if there is none."""
    done, open_names = set(), []

    def visit(name):
        if name in open_names:
            return [*open_names[open_names.index(name) :], name]
        if name in done:
            return None
        open_names.append(name)
        found = next(filter(None, map(visit, sorted(edges[name]))), None)
        open_names.pop()
        done.add(name)
        return found

    return next(filter(None, map(visit, sorted(edges))), None)


def test_no_modules_import_each_other():
    """Proves that the modules form layers: no cycle of imports, counting those in functions and those for type checkers alone.
    What a package imports to show its modules' names is left out: a module does not depend on the package around it."""
    paths = {module_name(path): path for path in PACKAGE.rglob("*.py")}
    shown = {name for name, path in paths.items() if path.name == "__init__.py"}
    edges = {name: ({*imports_of(path)} & paths.keys()) - shown - {name} for name, path in paths.items()}
    assert edges["trackway._run.run"] >= {"trackway._rehearsal.rehearsal", "trackway._diagnosis.diagnosis", "trackway._state.state"}
    assert edges["trackway.callbacks.lightning"] >= {"trackway.lightning", "trackway.callbacks._watch"}
    assert cycle_in(edges) is None
    assert cycle_in({**edges, "trackway._state.state": {"trackway._run.run"}}) is not None, "a cycle would be seen"


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_adapters_use_what_is_public(name):
    """Proves that a module for a framework uses no private name of a run: `trackway._run.adapter` is what it uses instead."""
    private = re.findall(r"run\(?\)?\._\w+", (PACKAGE / f"{name}.py").read_text())
    assert private == []


def test_extras_are_what_is_tested():
    """Proves that each lower bound of an extra is the version that the tests run with, to its minor number."""
    lines = [line for path in sorted(HERE.glob("requirements*.txt")) for line in path.read_text().splitlines()]
    pinned = dict(line.split("==") for line in lines if re.match(r"[\w-]+==", line))
    pinned["xgboost"] = pinned["xgboost-cpu"]  # the same library without a GPU
    extras = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for requirement in (Requirement(text) for texts in extras.values() for text in texts):
        tested = Version(pinned[requirement.name])
        assert str(requirement.specifier) == f">={tested.major}.{tested.minor}", requirement
