#!/usr/bin/env python3
"""Fails where a public name of the installed Python package `trackway` lacks a type that every checker can read.

    .venv-python/bin/python scripts/check_types.py

pyright reports the names (`--verifytypes`). What is made for a framework that is not installed here is left out.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

# The framework whose classes a module inherits from or takes.
FRAMEWORKS = {
    "trackway.callbacks.jax": "jax",
    "trackway.callbacks.keras": "keras",
    "trackway.callbacks.lightgbm": "lightgbm",
    "trackway.callbacks.lightning": "lightning_fabric",
    "trackway.callbacks.torch": "torch",
    "trackway.callbacks.transformers": "transformers",
    "trackway.callbacks.xgboost": "xgboost",
    "trackway.dcp": "torch",
    "trackway.lightning": "lightning_fabric",
    "trackway.orbax": "orbax",
    "trackway.transformers": "transformers",
}
# Names that inherit from a class without types: Keras has none.
WITHOUT_TYPES = {"trackway.callbacks.keras.KerasCallback"}


def report() -> dict:
    folder = Path(sys.executable).parent
    command = [folder / "pyright", "--verifytypes", "trackway", "--ignoreexternal", "--outputjson"]
    # It looks into the environment of the first `python` in PATH.
    variables = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(command, cwd="/", env=variables, capture_output=True, text=True, check=False)
    try:
        return json.loads(ran.stdout)["typeCompleteness"]
    except (ValueError, KeyError):
        sys.exit(f"pyright did not look at the package: {ran.stdout}{ran.stderr}")


def reasons(symbol: dict) -> list[str]:
    """Why the type of a name is not known everywhere. Missing texts are no errors."""
    errors = [found["message"] for found in symbol["diagnostics"] if found["severity"] == "error"]
    return [" ".join(message.split()) for message in errors]


def is_left_out(name: str) -> bool:
    needed = [framework for module, framework in FRAMEWORKS.items() if f"{name}.".startswith(f"{module}.")]
    return name in WITHOUT_TYPES or any(find_spec(framework) is None for framework in needed)


def main() -> int:
    symbols = [symbol for symbol in report()["symbols"] if symbol["name"].startswith("trackway.")]
    if not any(symbol["name"] == "trackway.attach" for symbol in symbols):
        sys.exit("pyright did not find `trackway.attach`: is the package installed?")
    # A name that is imported from elsewhere in the package lacks what the one there lacks, without a reason.
    lacking = [symbol for symbol in symbols if reasons(symbol) and not is_left_out(symbol["name"])]
    for symbol in lacking:
        print(f"{symbol['name']}: {'; '.join(reasons(symbol))}", file=sys.stderr)
    print(f"{len(symbols)} names of the package, {len(lacking)} without a complete type")
    return int(bool(lacking))


if __name__ == "__main__":
    sys.exit(main())
