"""Orbax's interface through Trackway: a killed training ends as a whole one, and what a loop calls is there."""

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from conftest import attempt_environment, need

from trackway import InputError, checkpoint

jax = need("jax")
ocp = need("orbax.checkpoint")
through = need("trackway.orbax")


def test_a_killed_training_ends_as_a_whole_one(tmp_path):
    """Proves that a Flax state with moments of optax and a key, restored into shapes, continues bit for bit after a kill,
    with the generator of NumPy, and is saved by the cadence of the run file, not by Orbax's options."""
    script = str(Path(__file__).parents[1] / "scripts/train_orbax.py")

    def train(folder, epoch, *arguments):
        folder.mkdir(exist_ok=True)
        environment = {**os.environ, **attempt_environment(folder, epoch, TRACKWAY_CHECKPOINT_EVERY_STEPS=2)}
        done = subprocess.run([sys.executable, script, *arguments], env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout.split(), done.stderr

    assert train(tmp_path, 1, "7", "5")[:2] == (-9, ["1"])
    code, resumed, error = train(tmp_path, 2, "7")
    assert code == 0, error
    assert resumed[0] == "5" and train(tmp_path / "whole", 1, "7")[1] == ["1", *resumed[1:]]
    assert [one.step for one in checkpoint.list(tmp_path / "checkpoints")] == [2, 4, 6]


def test_what_a_loop_calls(attempt, tmp_path, monkeypatch):
    """Proves that composites, dicts with any names and older steps come back, that a template is checked and not changed,
    and that outside an attempt it is Orbax's own manager."""
    manager = through.checkpoint_manager(tmp_path / "orbax", run=attempt(TRACKWAY_CHECKPOINT_EVERY_STEPS=10))
    assert manager.latest_step() is None and manager.all_steps() == []
    state = {"params": {"w": jax.numpy.arange(4.0)}, "rng": {"seed": 3}, "host": numpy.ones(2), "lr": 0.5}
    assert not manager.save(1, args=ocp.args.StandardSave(state))
    assert manager.save(2, args=ocp.args.StandardSave(state), force=True)
    both = ocp.args.Composite(model=ocp.args.StandardSave({"w": jax.numpy.ones(3)}), extra=ocp.args.JsonSave({"n": 1}))
    assert manager.save(3, args=both, metrics={"loss": 1.0}, force=True)
    manager.wait_until_finished()
    assert manager.latest_step() == 3 and manager.all_steps() == [2, 3] and not manager.reached_preemption(3)

    found = manager.restore(3, args=ocp.args.Composite(model=ocp.args.StandardRestore(), extra=ocp.args.JsonRestore()))
    assert found.model["w"].sum() == 3 and found.extra == {"n": 1}
    host = numpy.zeros(2)
    template = {**state, "params": {"w": jax.ShapeDtypeStruct((4,), "float32")}, "host": host, "lr": 0.0}
    found = manager.restore(2, args=ocp.args.StandardRestore(template))
    assert found["params"]["w"].tolist() == [0, 1, 2, 3] and found["rng"] == {"seed": 3} and found["lr"] == 0.5
    assert found["host"].sum() == 2 and host.sum() == 0 and template["lr"] == 0.0
    template["params"]["w"] = jax.ShapeDtypeStruct((5,), "float32")
    with pytest.raises(InputError, match=r"state\['params'\]\['w'\] is float32 \(4,\) in the checkpoint and float32 \(5,\)"):
        manager.restore(2, args=ocp.args.StandardRestore(template))
    with pytest.raises(InputError, match="no committed checkpoint of step 9; it contains 2, 3"):
        manager.restore(9)

    again = through.checkpoint_manager(tmp_path / "orbax", run=attempt(epoch=2))
    assert again.latest_step() == 3 and again.restore(args=both).extra == {"n": 1}
    for name in ("TRACKWAY_RUN", "TRACKWAY_ATTEMPT", "TRACKWAY_CHECKPOINTS"):
        monkeypatch.delenv(name)
    with through.checkpoint_manager(tmp_path / "orbax") as own:
        assert isinstance(own, ocp.CheckpointManager)
