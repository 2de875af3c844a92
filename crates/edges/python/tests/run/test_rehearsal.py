"""Rehearsals: the first batches come again and again, what is seen is recorded, and the training is not touched."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import attempt_environment, need, record_bytes

from trackway import InputError
from trackway._rehearsal.rehearsal import Rehearsal, copied, digest, leaves, tensor_facts

numpy = need("numpy")

ONE_BATCH = {"TRACKWAY_KIND": "one_batch", "TRACKWAY_MAX_STEPS": "8", "TRACKWAY_CHECKPOINT_AT_STEPS": "8"}


@pytest.fixture
def said(monkeypatch):
    """The facts of all rehearsals of a test, the last one of each topic."""
    facts = {}
    say = Rehearsal.say

    def keep(self, about, value):
        facts[about] = json.loads(json.dumps(value))
        say(self, about, value)

    monkeypatch.setattr(Rehearsal, "say", keep)
    return facts


def test_the_first_batches_come_again(attempt, said):
    """Proves that in a rehearsal the same values come in the same order however a loop changes them, that the steps of
    the script do not count, and that the loop ends at the last step of the rehearsal."""
    run = attempt(**{**ONE_BATCH, "TRACKWAY_KIND": "overfit", "TRACKWAY_REHEARSAL_BATCHES": "2"})
    seen = []
    for step, batch in run.batches([numpy.full(3, index) for index in range(9)], steps=3):
        seen.append(int(batch[0]))
        batch += 100
        run.log(step, loss=5.0)
        run.checkpoint(step, state={"params": {"a": numpy.ones(2)}})
    assert seen == [0, 1] * 4
    assert (run.rehearsal.kind, run.rehearsal.batch_count) == ("overfit", 2)
    assert (said["batches"]["looked_at"], said["batches"]["distinct"], said["batches"]["taken"]) == (3, 3, 2)
    assert (said["saved"]["step"], said["saved"]["components"]) == (8, ["params"])
    assert list(run.batches([numpy.ones(1)])) == [], "a loop over epochs comes back and ends"


def test_it_ends_at_its_target(attempt, tmp_path):
    """Proves that the loop ends once the loss is at its fraction of the first one, after a checkpoint was made."""
    run = attempt(**ONE_BATCH, TRACKWAY_REHEARSAL_TARGET="0.5")
    steps = []
    for step, _ in run.batches([[1.0], [2.0]]):
        steps.append(step)
        run.log(step, loss=8.0 / step)
        saved = run.checkpoint(step, state={"params": {"a": numpy.ones(2)}})
    assert (steps, saved) == ([1, 2], True)
    run.finish()
    record = record_bytes(tmp_path)
    assert b"rehearsal_target_reached" in record and b"rehearsal_handshake" in record


def test_training_knows_nothing_of_it(attempt, said, tmp_path):
    """Proves that a training attempt has no rehearsal: all batches come, and no fact is recorded."""
    run = attempt()
    assert [batch for _, batch in run.batches(["a", "b", "c"])] == ["a", "b", "c"]
    assert run.rehearsal is None and not said and b"rehearsal" not in record_bytes(tmp_path)
    assert [run.evaluating(step, every=10) for step in (1, 10, 15, 20)] == [False, True, False, True]


def test_an_evaluation_is_tried_at_once(attempt, said):
    """Proves that a rehearsal evaluates at the first step that requires it, and then not again; and what a probe records."""
    run = attempt(**ONE_BATCH)
    assert [run.evaluating(step, every=10) for step in (1, 10, 20)] == [True, False, False]
    weights = numpy.array([[1.0, 2.0]])
    run.probe(lambda batch: (batch["x"] @ weights.T).sum(), {"x": numpy.ones((3, 2)), "y": numpy.ones(3)})
    assert said["probe"] == {"loss": 9.0, "zeroed": 0.0} and said["evaluation"] == {"calls": 1}


def test_an_empty_loader_is_reported(attempt):
    """Proves that a loader without batches is an error and no endless loop."""
    with pytest.raises(InputError, match="empty"):
        list(attempt(**ONE_BATCH).batches([]))


def test_batches_of_any_form():
    """Proves that the leaves of nested batches are found with their places, that equal ones have equal digests, and
    that NaN and infinities are counted apart."""
    batch = {"x": [numpy.ones(2), 3], "y": ({"z": "text"}, None)}
    assert [name for name, _ in leaves(batch)] == ["x.0", "x.1", "y.0.z"]
    again = copied(batch)
    assert again["x"][0] is not batch["x"][0] and digest(again) == digest(batch)
    again["x"][0][1] = 7
    assert digest(again) != digest(batch) and digest(object()) is None
    facts = tensor_facts("x", numpy.array([1.0, 3.0, numpy.nan, numpy.inf], dtype="float32"))
    assert (facts["mean"], facts["stddev"], facts["nan_count"], facts["infinite_count"]) == (2.0, 1.0, 1, 1)


def losses_of(environment):
    script = Path(__file__).parents[1] / "scripts/train_flawed.py"
    code = (
        f"import sys, trackway; sys.path.insert(0, {str(script.parent)!r}); import train_flawed\n"
        "log = trackway.Run.log\n"
        "def spied(run, step, values=None, /, **named):\n"
        "    'loss' in named and print(step, float(named['loss']).hex())\n"
        "    log(run, step, values, **named)\n"
        "trackway.Run.log = spied\n"
        "train_flawed.main('none')\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.splitlines()


def test_watching_changes_no_bit(tmp_path, monkeypatch):
    """Proves that the hooks of a rehearsal change nothing: with and without them the same losses come out, bit for bit,
    with dropout and random data."""
    need("torch")
    environment = attempt_environment(tmp_path, **ONE_BATCH)
    watched = losses_of(environment)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    (tmp_path / "sitecustomize.py").write_text(
        "import trackway._rehearsal.rehearsal as rehearsal\nrehearsal.Rehearsal._watching = lambda self, loader: None\n"
    )
    blind = losses_of({**attempt_environment(tmp_path / "blind", **ONE_BATCH), "PYTHONPATH": os.environ["PYTHONPATH"]})
    assert len(watched) == 8 and watched == blind


def test_what_torch_does_is_seen(tmp_path):
    """Proves that a script that does everything right is seen to do so: nothing is blind, every parameter moves, labels
    are those of the batch, and a second launch begins with the very state that was saved."""
    need("torch")
    script = Path(__file__).parents[1] / "scripts/train_flawed.py"
    for epoch, steps in [(1, 8), (2, 9)]:
        environment = attempt_environment(
            tmp_path, epoch, **{**ONE_BATCH, "TRACKWAY_MAX_STEPS": steps, "TRACKWAY_CHECKPOINT_AT_STEPS": steps}
        )
        subprocess.run([sys.executable, script, "none"], env={**os.environ, **environment}, check=True)
        assert b"rehearsal_blind" not in record_bytes(tmp_path, epoch)
    saved, resumed = facts_of(record_bytes(tmp_path), b"saved"), facts_of(record_bytes(tmp_path, 2), b"resumed")
    assert saved["models"] == resumed["models"] and saved["optimizers"] == resumed["optimizers"]
    updates = facts_of(record_bytes(tmp_path), b"updates")
    assert (updates["unmoved"]["tensors"], updates["backward_count"], updates["optimizer_steps"]) == (0, 8, 8)
    loss = facts_of(record_bytes(tmp_path), b"loss_function")
    assert (loss["name"], loss["classes"], loss["reordered"], loss["out_of_range"]) == ("cross_entropy", 10, 0, 0)
    reload = facts_of(record_bytes(tmp_path), b"batches")["reload"]
    assert reload == {"checked": 32, "inputs_changed": 0, "labels_changed": 0, "unpaired": 0}


COMPILED = """
import sys
import torch, trackway
run = trackway.attach()
model = torch.nn.Linear(4, 1)
scores = torch.compile(model, backend="eager") if "compiled" in sys.argv else model
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(torch.randn(4, 4), torch.randn(4, 1)), (torch.randn(3, 4), torch.randn(3, 1))]
for step, (inputs, labels) in run.batches(batches, steps=8):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(scores(inputs), labels)
    loss.backward()
    optimizer.step()
    run.log(step, loss=loss.item())
"""


@pytest.mark.parametrize("how", ["compiled", "plain"])
def test_what_compiling_takes_is_seen(tmp_path, how):
    """Proves that the seconds of `torch.compile` up to the first update and after it, for a batch of another shape, are
    measured, and that a script without it is seen to have none."""
    need("torch")
    script = tmp_path / "train.py"
    script.write_text(COMPILED)
    environment = attempt_environment(
        tmp_path, **{**ONE_BATCH, "TRACKWAY_KIND": "overfit", "TRACKWAY_REHEARSAL_BATCHES": "2"}
    )
    subprocess.run([sys.executable, script, how], env={**os.environ, **environment}, check=True)
    settings = facts_of(record_bytes(tmp_path), b"settings")
    assert settings["compiled"] is (how == "compiled")
    if how == "compiled":
        assert settings["compile_seconds"] > 0 and settings["recompile_seconds"] > 0


def facts_of(record, about):
    """The last facts about a topic."""
    begin = record.index(b"{", record.rindex(about + b"\x05\x00facts"))
    return json.JSONDecoder().raw_decode(record[begin:].decode("utf-8", "ignore"))[0]
