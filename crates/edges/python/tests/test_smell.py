"""Failed runs of frameworks with a known truth, and what `explain` answers about each."""

import pathlib
import shutil
import subprocess
import sys

from conftest import need

SMELL = pathlib.Path(__file__).parents[2] / "cli" / "tests" / "smell" / "smell.py"


def test_an_engineer_understands_each_failure():
    """Proves that cause, evidence, safe checkpoint, change, cost and next step are right for a Trainer, a LightningModule, a
    booster and two ranks under torchrun, and that no sentence contradicts the truth. All mechanisms: `make smell`."""
    for framework in ("torch", "transformers", "pytorch_lightning", "xgboost"):
        need(framework)
    program = shutil.which("trackway")
    assert program, "the tests need the program `trackway` in PATH"
    command = [sys.executable, SMELL, "--program", program, "--kinds", "few"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-2000:]
