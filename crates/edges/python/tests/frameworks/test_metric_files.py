"""What frameworks write about themselves, read by `trackway run` without a change of the script."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import is_required, need

need("torch")
need("transformers")
need("accelerate")

LIGHTNING = """
import sys
import pytorch_lightning as lightning
import torch
from pytorch_lightning.callbacks import RichProgressBar
from pytorch_lightning.loggers import CSVLogger

class Module(lightning.LightningModule):
    def __init__(self, rate=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch[0]).square().mean()
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", self.layer(batch[0]).square().mean(), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.rate)

data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(40, 4)), batch_size=4)
bars = [RichProgressBar()] if sys.argv[1] == "rich" else []
trainer = lightning.Trainer(
    accelerator="cpu", max_epochs=3, log_every_n_steps=1, logger=CSVLogger("."), callbacks=bars,
    enable_progress_bar=bool(bars), enable_model_summary=False,
)
trainer.fit(Module(), data, data)
"""

TRANSFORMERS = """
import torch
import transformers

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, inputs, labels):
        output = self.layer(inputs)
        return {"loss": torch.nn.functional.mse_loss(output, labels), "logits": output}

rows = [{"inputs": torch.randn(4), "labels": torch.randn(1)} for _ in range(40)]
arguments = transformers.TrainingArguments(
    output_dir="out", per_device_train_batch_size=5, max_steps=16, logging_steps=2, save_steps=8, report_to=[],
    disable_tqdm=True, use_cpu=True,
)
trainer = transformers.Trainer(model=Model(), args=arguments, train_dataset=rows)
trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
trainer.train()
"""


def curves_of(folder, script, *arguments):
    """Runs a script, and gives the steps of each metric with the source of its values."""
    program = shutil.which("trackway")
    if program is None:
        if is_required("trackway"):
            raise AssertionError("`trackway` is not in PATH")
        pytest.skip("`trackway` is not in PATH")
    (folder / "train.py").write_text(script)
    environment = {**os.environ, "TRACKWAY_HOME": str(folder / "home")}
    command = [program, "run", "--", sys.executable, "train.py", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    query = "select name, origin, step from effective_metrics order by step"
    command = [program, "sql", "--json", query]
    rows = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
    curves = {}
    for row in json.loads(rows):
        curves.setdefault((row["name"], row["origin"]), []).append(row["step"])
    return curves


def test_lightning_with_rich_has_its_whole_curve(tmp_path):
    """Proves that Lightning with its bar of `rich`, which draws one frame where there is no terminal, has a value for each
    of its steps, as without a bar."""
    need("pytorch_lightning")
    need("rich")
    for bar in ("rich", "none"):
        folder = tmp_path / bar
        folder.mkdir()
        curves = curves_of(folder, LIGHTNING, bar)
        assert curves["train_loss", "files"] == list(range(30)), curves
        assert len(curves["val_loss", "files"]) == 3, curves


def test_the_state_of_a_trainer_that_prints_nothing(tmp_path):
    """Proves that what a Trainer logged is recorded once, from the states in its checkpoints."""
    curves = curves_of(tmp_path, TRANSFORMERS)
    assert curves["loss", "files"] == list(range(2, 17, 2)), curves
