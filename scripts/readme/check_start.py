#!/usr/bin/env python3
"""Installs the wheel into an empty environment without Rust, runs the session of a README there, and compares what is printed.

    scripts/readme/check_start.py README.md DIST

The README has links to the scripts ([`NAME.py`](PATH)) and the commands with their output (```console blocks). A line `…` there is any
number of lines. What differs between two runs is replaced by what it is, in both; `VOLATILE` has all of it.
"""

import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# A line of a README in place of output that it does not show.
LEFT_OUT = "…"
# What the commands of the session need beside the wheel.
PROGRAMS = ("sh", "rm")
VOLATILE = {
    "id": r"\b(?:run|att)_[0-9a-hjkmnp-tv-z]{26}\b",
    "time": r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?\b",
    "hash": r"\b[0-9a-f]{12,64}\b",
    "duration": r"\b\d+(?:\.\d+)? (?:ms|s)\b",
    "count": r"\b\d+ (?=not applicable\b)",
    # Columns of a table are as wide as what they hold.
    "blanks": r"(?<=\S) {2,}",
}


def blocks(readme: Path) -> list[str]:
    """The blocks of commands."""
    return re.findall(r"^```console\n(.*?)^```$", readme.read_text(), re.MULTILINE | re.DOTALL)


def copy_scripts(readme: Path, work: Path) -> None:
    """Puts the scripts of the session where it runs."""
    for name, path in re.findall(r"\[`(\w+\.py)`\]\((.*?)\)", readme.read_text()):
        shutil.copy(readme.parent / path, work / name)


def commands(block: str) -> list[tuple[str, str]]:
    """Each command of a console block, and the output that is shown below it."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def normalised(text: str) -> list[str]:
    for name, pattern in VOLATILE.items():
        text = re.sub(pattern, f"[{name}]", text)
    return [line.rstrip() for line in text.strip().split("\n")]


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether this is what a README shows, where it leaves lines out."""
    pattern = "".join("(?:.*\n)*?" if line == LEFT_OUT else re.escape(line) + "\n" for line in shown)
    return bool(re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)))


def environment(folder: Path) -> dict[str, str]:
    """What the session has: the programs of the environment, two of the system, no compiler, and nothing of this user's settings."""
    system = folder / "bin"
    system.mkdir()
    for program in PROGRAMS:
        (system / program).symlink_to(shutil.which(program) or sys.exit(f"`{program}` is not installed"))
    return {"PATH": f"{folder / 'venv/bin'}:{system}", "HOME": str(folder), "LANG": "C.UTF-8", "NO_COLOR": "1"}


def install(wheel: Path, folder: Path, variables: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [folder / "venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-index", wheel], check=True, env=variables)
    version = "import trackway; print('trackway', trackway.__version__)"
    versions = [
        subprocess.run(command, check=True, env=variables, capture_output=True, text=True).stdout
        for command in ([folder / "venv/bin/trackway", "--version"], [folder / "venv/bin/python", "-c", version])
    ]
    if versions[0] != versions[1]:
        sys.exit(f"the command and the module have different versions: {versions}")


def differences(readme: Path, folder: Path, variables: dict[str, str]) -> list[str]:
    """Runs the session; what it prints that the README does not, and the other way round."""
    work = folder / "project"
    work.mkdir()
    copy_scripts(readme, work)
    found = []
    for command, shown in (pair for block in blocks(readme) for pair in commands(block)):
        print(f"$ {command}", flush=True)
        ran = subprocess.run(
            ["sh", "-c", command], cwd=work, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        print(ran.stdout, end="", flush=True)
        wanted, printed = normalised(shown), normalised(ran.stdout)
        if not matches(wanted, printed):
            found += [f"$ {command}", *difflib.unified_diff(wanted, printed, "README", "printed", lineterm="", n=1)]
    return found


def main() -> int:
    readme, (wheel,) = Path(sys.argv[1]), Path(sys.argv[2]).absolute().glob("trackway-*.whl")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        variables = environment(folder)
        install(wheel, folder, variables)
        installed = time.monotonic()
        found = differences(readme, folder, variables)
    ended = time.monotonic()
    print(f"{wheel.name}: installed in {installed - started:.1f} s, session in {ended - installed:.1f} s")
    print("\n".join(found), file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
