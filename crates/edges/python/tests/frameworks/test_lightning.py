"""Lightning's checkpoints through Trackway: killed trainings end as whole ones, by any of Lightning's ways to resume."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import attempt_environment, need, newest, record_bytes

from trackway import InputError, callbacks, checkpoint

torch = need("torch")
lightning = need("pytorch_lightning")
storage = need("trackway.lightning")

FAR = {"TRACKWAY_CHECKPOINT_EVERY_STEPS": 1000}


def test_killed_trainings_end_as_whole_ones(tmp_path):
    """Proves with kills that weights, optimizer, schedule, random numbers and Lightning's own state are resumed, from
    what is committed and by `last`; that the cadence of the run file saves; and that two processes save together."""
    environments = {"whole": attempt_environment(tmp_path / "whole", 1, **FAR)}
    cadences = {"cadence": {"TRACKWAY_CHECKPOINT_EVERY_STEPS": 3}, "epochs": {"TRACKWAY_CHECKPOINT_EVERY_EPOCHS": 1}}
    for name in ("killed", "last", "cadence", "epochs", "ranks"):
        every = cadences.get(name, FAR)
        environments |= {f"{name}{epoch}": attempt_environment(tmp_path / name, epoch, **every) for epoch in (1, 2)}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        environments["port"] = str(free.getsockname()[1])
    (tmp_path / "environments.json").write_text(json.dumps(environments))
    script = Path(__file__).parents[1] / "scripts/train_lightning.py"
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    whole = found["whole"][0]
    for name, epochs in (("killed", [2] * 5 + [3] * 5), ("last", [3] * 5)):
        (first,), (second,) = found[f"{name}1"], found[f"{name}2"]
        assert first is None and second["seen"] == epochs, name
        assert {**second, "seen": whole["seen"]} == whole, name
    # Killed in the batch after step 9, at which the run file's cadence had saved.
    assert found["cadence1"] == [None] and found["cadence2"][0]["step"] == 10 and found["cadence2"][0]["seen"] == [1]
    # Killed in the third epoch: the cadence had saved at the end of the second one, and saves no more often after that.
    assert found["epochs1"] == [None] and found["epochs2"][0]["seen"] == [2] * 5 + [3] * 5
    assert found["epochs2"][0]["digest"] == whole["digest"]
    assert [one.step for one in checkpoint.list(tmp_path / "epochs/checkpoints")] == [5, 10, 15, 20]
    ranks, again = found["ranks1"], found["ranks2"]
    assert len({rank["digest"] for rank in [*ranks, *again]}) == 1 and all(rank["seen"] == [] for rank in again)
    files = {path.name for path in newest(tmp_path / "ranks/checkpoints").iterdir()}
    assert {"rank-0001-rng.json", "model.safetensors", "optimizers.safetensors", "schedulers.json", "foreign.pt"} <= files
    for root in tmp_path.glob("*/checkpoints"):
        assert not any(checkpoint.verify(root).values())


def state_of(step):
    return {
        "global_step": step, "epoch": 1, "state_dict": {"w": torch.full((2,), float(step))}, "optimizer_states": [{"lr": 0.1}],
        "lr_schedulers": [], "loops": {"fit": {"done": True}}, "hyper_parameters": {"path": Path("x")},
    }  # fmt: skip


def test_what_a_path_means(attempt, tmp_path, monkeypatch):
    """Proves that pointers name their checkpoint also when it is not the newest, that a lost save, and the pointer of
    another run, fall back only at the beginning of an attempt, that a rehearsal leaves no pointer, that weights alone
    and everything outside an attempt are plain files, and what is refused."""
    io = storage.TrackwayCheckpointIO(attempt(), wait=True)
    assert io.newest is None
    first, second, weights = (tmp_path / f"{name}.ckpt" for name in ("first", "second", "weights"))
    io.save_checkpoint(state_of(4), first)
    io.save_checkpoint(state_of(8), second)
    io.save_checkpoint(state_of(8), tmp_path / "again.ckpt")
    for path, step in ((first, 4), (second, 8), (newest(tmp_path / "checkpoints"), 8)):
        found = io.load_checkpoint(path)
        assert torch.equal(found.pop("state_dict")["w"], torch.full((2,), float(step)))
        assert found == {key: value for key, value in state_of(step).items() if key != "state_dict"}
    io.save_checkpoint({"global_step": 9, "state_dict": {}}, weights)
    assert torch.load(weights)["global_step"] == 9 == io.load_checkpoint(weights)["global_step"]

    lost = tmp_path / "lost.ckpt"
    lost.write_text(first.read_text().replace('"step": 4', '"step": 12'))
    with pytest.raises(InputError, match="names step 12, .* it holds 4, 8, 8"):
        io.load_checkpoint(lost)
    resumed = storage.TrackwayCheckpointIO(attempt(epoch=2))
    assert resumed.load_checkpoint(lost)["global_step"] == 8
    foreign = tmp_path / "foreign.ckpt"
    foreign.write_text(first.read_text().replace("/checkpoints", "/elsewhere"))
    assert storage.TrackwayCheckpointIO(attempt(epoch=3)).load_checkpoint(foreign)["global_step"] == 8
    resumed.remove_checkpoint(first)
    assert not first.exists() and [one.step for one in checkpoint.list(tmp_path / "checkpoints")] == [4, 8, 8]

    rehearsal = storage.TrackwayCheckpointIO(attempt(epoch=5, TRACKWAY_KIND="one_batch", TRACKWAY_REHEARSAL_BATCHES=1), wait=True)
    rehearsal.save_checkpoint(state_of(20), first)
    assert not first.exists()
    monkeypatch.delenv("TRACKWAY_KIND")

    several = storage.TrackwayCheckpointIO(attempt(epoch=6, RANK=0, WORLD_SIZE=2))
    with pytest.raises(InputError, match="2 processes save together: add .*LightningCallback"):
        several.save_checkpoint(state_of(20), first)
    trainer = lightning.Trainer(accelerator="cpu", plugins=[several], logger=False, enable_checkpointing=False)
    trainer.strategy.__class__ = type("OwnStrategy", (type(trainer.strategy),), {"save_checkpoint": lambda *_: None})
    with pytest.raises(InputError, match="OwnStrategy does not save through plugins"):
        callbacks.LightningCallback().setup(trainer, None, "fit")
    for name in ("TRACKWAY_RUN", "TRACKWAY_ATTEMPT", "TRACKWAY_CHECKPOINTS", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name)
    outside = storage.TrackwayCheckpointIO()
    outside.save_checkpoint(state_of(4), weights)
    assert outside.newest is None and outside.load_checkpoint(second)["global_step"] == 8
    assert torch.load(weights, weights_only=False)["epoch"] == 1
    assert b"callback_failed" not in record_bytes(tmp_path)
