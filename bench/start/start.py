#!/usr/bin/env python3
"""Measures what `trackway run -- true` takes beside `true` alone: in an empty folder, beside 20,000 files, beside 900 files of code, and with
1,000 runs in the home. Prints wall time, what it is over the script alone, and processor time of all processes.

    cargo build --profile quick -p trackway
    python3 bench/start/start.py target/quick/trackway [--repeats 15] [--runs 1000]

bench/start/README.md says where the time is spent.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

FILES, FILES_IN_FOLDER = 20_000, 200
CODE_FILES, CODE_FUNCTIONS = 900, 40
# What a launch may take over the script alone.
AIM_EMPTY_SECONDS, AIM_FILES_SECONDS = 0.050, 0.100
WARM_UP = 2


def once(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Wall and processor seconds of one run and of all that it waited for; a failure ends the benchmark."""
    began = time.perf_counter()
    child = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    return wall, used.ru_utime + used.ru_stime


def measured(name: str, command: list[str], folder: Path, home: Path, repeats: int, alone: float | None = None, aim: float | None = None) -> float:
    """Prints one row. The median of the wall seconds."""
    environment = {**os.environ, "TRACKWAY_HOME": str(home)}
    taken = [once(command, folder, environment) for _ in range(repeats + WARM_UP)][WARM_UP:]
    wall, processor = (statistics.median(times) for times in zip(*taken))
    over = "" if alone is None else f"{(wall - alone) * 1e3:8.1f} ms over it, {wall / alone:6.1f} x"
    kept = "" if alone is None or aim is None else f", aim {aim * 1e3:.0f} ms: {'kept' if wall - alone <= aim else 'MISSED'}"
    print(f"  {name:<34} {wall * 1e3:8.1f} ms, processors {processor * 1e3:7.1f} ms {over}{kept}", flush=True)
    return wall


def fill_with_texts(folder: Path) -> None:
    for number in range(FILES):
        below = folder / f"part{number // FILES_IN_FOLDER}"
        below.mkdir(exist_ok=True)
        (below / f"sample{number}.txt").write_text("one sample of many\n")


def fill_with_code(folder: Path) -> None:
    function = 'def f{}(x):\n    """Adds."""\n    return x + 1  # one\n\n'
    text = '"""A module."""\nimport os\n\n' + "".join(function.format(number) for number in range(CODE_FUNCTIONS))
    for number in range(CODE_FILES):
        below = folder / f"package{number // 30}"
        below.mkdir(exist_ok=True)
        (below / f"module{number}.py").write_text(f"# {number}\n{text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--runs", type=int, default=1000, help="how many runs are in the home for the last row")
    given = parser.parse_args()
    run = [str(given.binary.resolve()), "run", "--", "true"]
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        empty, texts, code, home = (base / part for part in ["empty", "texts", "code", "home"])
        for folder in [empty, texts, code]:
            folder.mkdir()
        fill_with_texts(texts)
        fill_with_code(code)
        print("the start and the end of a run, the script taking no time")
        alone = measured("`true` alone", ["true"], empty, home, given.repeats)
        measured("an empty folder", run, empty, home, given.repeats, alone, AIM_EMPTY_SECONDS)
        measured(f"beside {FILES:,} files", run, texts, home, given.repeats, alone, AIM_FILES_SECONDS)
        measured(f"beside {CODE_FILES} files of code", run, code, home, given.repeats, alone, AIM_FILES_SECONDS)
        environment = {**os.environ, "TRACKWAY_HOME": str(home)}
        for _ in range(given.runs):
            once(run, empty, environment)
        measured(f"with {given.runs:,} runs in the home", run, empty, home, given.repeats, alone, AIM_EMPTY_SECONDS)


if __name__ == "__main__":
    main()
