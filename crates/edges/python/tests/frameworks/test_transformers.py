"""The Trainer's checkpoints through Trackway: killed trainings end as whole ones, also in the middle of an epoch."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import attempt_environment, need, newest

from trackway import InputError, checkpoint

torch = need("torch")
transformers = need("transformers")
need("accelerate")
through = need("trackway.transformers")


def test_killed_trainings_end_as_whole_ones(tmp_path):
    """Proves with kills in the middle of an epoch that model, optimizer, schedule, random numbers and the Trainer's own
    state are resumed by one and by two processes, saved by the cadence of the run file or the Trainer's, that nothing is
    written to the Trainer's folder, and that the best model is loaded at the end."""
    environments = {}
    for name in ("whole", "killed1", "killed2", "best1", "best2", "epochs1", "epochs2", "ranks0", "ranks1", "ranks2"):
        every = {"TRACKWAY_CHECKPOINT_EVERY_STEPS": 3 if name.startswith("killed") else 1000}
        every = {"TRACKWAY_CHECKPOINT_EVERY_EPOCHS": 1} if name.startswith("epochs") else every
        folder = tmp_path / ("alone" if name == "ranks0" else name.rstrip("12"))
        environments[name] = attempt_environment(folder, 2 if name.endswith("2") else 1, **every)
        folder.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        environments["port"] = str(free.getsockname()[1])
    (tmp_path / "environments.json").write_text(json.dumps(environments))
    script = Path(__file__).parents[1] / "scripts/train_transformers.py"
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])

    # The 16 steps are two epochs; the kill came in the second.
    whole, (resumed,) = found["whole"][0], found["killed2"]
    assert found["killed1"] == [None] and resumed["first"] in (6, 9)
    assert {**resumed, "first": 0} == whole
    assert found["epochs1"] == [None] and found["epochs2"][0]["first"] == 8
    assert {**found["epochs2"][0], "first": 0} == whole
    assert [one.step for one in checkpoint.list(tmp_path / "epochs/checkpoints")] == [8, 16]
    (best,) = found["best2"]
    assert found["best1"] == [None] and best["first"] in (8, 12) and len(best["losses"]) == 5
    assert best["again"] == best["best"] == min(best["losses"]) < best["losses"][3]
    assert found["ranks1"] == [None, None] and {rank["first"] for rank in found["ranks2"]} <= {2, 4}
    assert [{**rank, "first": 0} for rank in found["ranks2"]] == found["ranks0"]
    assert [rank["own"] for rank in [whole, best, *found["ranks2"]]] == [[]] * 4
    files = {path.name for path in newest(tmp_path / "ranks/checkpoints").iterdir()}
    assert {"model.safetensors", "optimizer.safetensors", "trainer_state.json", "rank-0001-rng.json"} <= files
    for root in tmp_path.glob("*/checkpoints"):
        assert not any(checkpoint.verify(root).values())


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, inputs, labels=None):
        return {"loss": self.layer(inputs).square().mean()}


def trained(folder, **options):
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), report_to=[], disable_tqdm=True, use_cpu=True, max_steps=2, save_steps=1, **options
    )
    trainer = through.Trainer(model=Model(), args=arguments, train_dataset=[{"inputs": torch.ones(2)}] * 4)
    trainer.train()
    return trainer


def test_what_the_trainer_saves_by_itself(attempt, tmp_path, monkeypatch):
    """Proves that outside an attempt, and weights alone, are saved as the Trainer does it, and the error for a checkpoint
    that is not the Trainer's."""
    run = attempt()
    trained(tmp_path / "weights", save_only_model=True)
    assert len(list((tmp_path / "weights").glob("checkpoint-*/model.safetensors"))) == 2
    assert checkpoint.list(tmp_path / "checkpoints") == []
    run.checkpoint(1, state={"params": {"w": torch.ones(1)}}, force=True, wait=True)
    attempt(epoch=2)
    with pytest.raises(InputError, match="step 1 was not saved by the Trainer"):
        trained(tmp_path / "other")
    for name in ("TRACKWAY_RUN", "TRACKWAY_ATTEMPT", "TRACKWAY_CHECKPOINTS"):
        monkeypatch.delenv(name)
    trained(tmp_path / "outside")
    assert len(list((tmp_path / "outside").glob("checkpoint-*/trainer_state.json"))) == 2
