"""Failed runs of frameworks with a known truth, and what `explain` answers about each."""

import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import need

SMELL = pathlib.Path(__file__).parents[3] / "cli" / "tests" / "smell" / "smell.py"


@pytest.mark.parametrize("frameworks", [("torch", "transformers", "xgboost"), ("pytorch_lightning",)], ids=["main", "lightning"])
def test_an_engineer_understands_each_failure(frameworks):
    """Proves that cause, evidence, safe checkpoint, change, cost and next step are right for a Trainer, a LightningModule, a
    booster and two ranks under torchrun, and that no sentence contradicts the truth. All mechanisms: `make smell`."""
    for framework in frameworks:
        need(framework)
    program = shutil.which("trackway")
    assert program, "the tests need the program `trackway` in PATH"
    command = [sys.executable, SMELL, "--program", program, "--kinds", "few", "--without"]
    command += ["trainer", "booster", "ranks"] if "pytorch_lightning" in frameworks else ["lightning"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-2000:]
