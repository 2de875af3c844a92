"""Trainings side by side in one folder, killed and resumed at random."""

import pathlib
import shutil
import subprocess
import sys

from conftest import need

STORM = pathlib.Path(__file__).parents[4] / "run" / "adopt" / "samples" / "storm.py"


def test_nobodys_file_is_touched():
    """Proves that of two pairs of plain loops, a pair of untouched Trainers and a sweep in one folder each keeps
    every file that it wrote, and that what is registered of each are its own weights. The larger one is `make storm`."""
    need("torch")
    need("transformers")
    program = shutil.which("trackway")
    assert program, "the tests need the program `trackway` in PATH"
    command = [sys.executable, STORM, program, "1", "3"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-2000:]
