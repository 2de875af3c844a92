"""PyTorch Distributed Checkpoint through Trackway: shards of several ranks are one checkpoint, loaded by any number."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import attempt_environment, need, newest, record_bytes

from trackway import InputError, IntegrityError, checkpoint

torch = need("torch")
dcp = need("torch.distributed.checkpoint")
trackway_dcp = need("trackway.dcp")

EVERY_STEP = {"TRACKWAY_CHECKPOINT_EVERY_STEPS": 1}


def states(root):
    return [(found.step, found.state) for found in checkpoint.list(root)]


def test_shards_of_several_ranks(tmp_path):
    """Proves with FSDP2 and gloo that a rank killed within a save commits nothing, that the resumed run ends as one that
    was not killed, and that shards, also of HSDP, are equal bit for bit when 1, 2 and 3 ranks load them; the same for
    `Sharded` without `rejoin`, which refuses another layout of as many ranks. A rehearsal saves them too."""
    environments = {
        "whole": attempt_environment(tmp_path / "whole", 1, TRACKWAY_CHECKPOINT_EVERY_STEPS=3),
        "killed1": attempt_environment(tmp_path / "killed", 1, **EVERY_STEP),
        "killed2": attempt_environment(tmp_path / "killed", 2, **EVERY_STEP),
        "by1": attempt_environment(tmp_path / "killed", 3),
        "by3": attempt_environment(tmp_path / "killed", 4),
        "hybrid1": attempt_environment(tmp_path / "hybrid", 1, **EVERY_STEP),
        "hybrid2": attempt_environment(tmp_path / "hybrid", 2, **EVERY_STEP),
        "plain": {},
        "failed": attempt_environment(tmp_path / "failed", 1, **EVERY_STEP),
        "rehearsal": attempt_environment(
            tmp_path / "rehearsal", 1, TRACKWAY_KIND="one_batch", TRACKWAY_REHEARSAL_BATCHES=1, TRACKWAY_MAX_STEPS=3, **EVERY_STEP
        ),
        "sharded0": attempt_environment(tmp_path / "unbroken", 1, TRACKWAY_CHECKPOINT_EVERY_STEPS=3),
        **{f"sharded{epoch}": attempt_environment(tmp_path / "sharded", epoch, **EVERY_STEP) for epoch in range(1, 6)},
    }
    for name in ("whole", "killed", "hybrid", "failed", "rehearsal", "unbroken", "sharded"):
        (tmp_path / name).mkdir()
    (tmp_path / "environments.json").write_text(json.dumps(environments))
    script = Path(__file__).parents[1] / "scripts/ranks_dcp.py"
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    whole, resumed = found["whole"], found["killed2"]
    assert found["killed1"] == [None, None]
    # The ranks died within the save of step 4; that of step 3 was committed.
    assert [rank["from"] for rank in resumed] == [4, 4]
    for name in ("digest", "own", "rate", "note"):
        assert [rank[name] for rank in resumed] == [rank[name] for rank in whole], name
    of_fourth = [state for step, state in states(tmp_path / "killed/checkpoints") if step == 4]
    assert of_fourth in (["writing", "superseded"], ["superseded"])
    for ranks in (found["by1"], found["by3"], resumed):
        assert {rank["digest"] for rank in ranks} == {whole[0]["digest"]}
    assert {rank["digest"] for rank in found["plain"]} == {whole[0]["third"]}
    assert [rank["from"] for rank in found["hybrid2"]] == [3, 3]
    assert {rank["digest"] for rank in found["hybrid2"]} == {found["hybrid1"][0]["digest"]}

    assert all("nothing to copy" in rank["why"] and rank["saved"] for rank in found["failed"])
    assert states(tmp_path / "failed/checkpoints") == [(2, "committed")]
    # A rehearsal looks at the parameters before each save.
    assert [rank["from"] for rank in found["rehearsal"]] == [1, 1]
    assert b"saved" in record_bytes(tmp_path / "rehearsal")

    assert found["sharded2"] == [{**rank, "from": 4} for rank in found["sharded0"]]
    for again in (found["sharded3"], found["sharded4"]):
        assert [rank["from"] for rank in again] == [6] * len(again)
        assert {rank["digest"] for rank in again} == {found["sharded0"][0]["digest"]}
    assert all("model.0.weight has another layout than when it was saved" in rank["error"] for rank in found["sharded5"])


def test_the_writer_of_one_process(attempt, tmp_path, recwarn):
    """Proves which files a state becomes, that the step may come from DCP's own id, that every dtype comes back, and
    that what verifies is loaded when the newest checkpoint is damaged."""
    run = attempt()
    state = {
        "model": {"w": torch.arange(6.0).view(2, 3).T, "b": torch.zeros(0), "c": torch.ones(2, dtype=torch.complex128)},
        "optim": {"exp": torch.ones(3, dtype=torch.bfloat16)}, "epoch": 4,
    }  # fmt: skip
    dcp.save(state, checkpoint_id="out/step-7", storage_writer=trackway_dcp.StorageWriter(run, wait=True))
    root = tmp_path / "checkpoints"
    files = {path.name for path in newest(root).iterdir()}
    assert {"dcp.json", "dcp_weights.safetensors", "dcp_optimizer.safetensors", "dcp_other.safetensors"} <= files
    assert states(root) == [(7, "committed")]
    later = {**state, "epoch": 5}
    dcp.save(later, storage_writer=trackway_dcp.StorageWriter(run, 8, wait=True))

    def loaded(source):
        into = {
            "model": {name: torch.full_like(value, 9) for name, value in state["model"].items()},
            "optim": {"exp": torch.zeros(3, dtype=torch.bfloat16)}, "epoch": 0,
        }  # fmt: skip
        dcp.load(into, storage_reader=trackway_dcp.StorageReader(source))
        assert all(torch.equal(into["model"][name], value) for name, value in state["model"].items())
        assert torch.equal(into["optim"]["exp"], state["optim"]["exp"])
        return into["epoch"]

    assert loaded(root) == 5
    assert loaded(attempt(epoch=2)) == 5
    path = newest(root) / "dcp_weights.safetensors"
    os.chmod(path, 0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert loaded(root) == 4
    assert loaded(attempt(epoch=3)) == 4
    path = newest(root).parent.parent / "step-00000007"
    for damaged in path.glob("*/dcp.json"):
        os.chmod(damaged, 0o644)
        damaged.write_bytes(b"{}")
    with pytest.raises(IntegrityError, match="no checkpoint of .* verifies: .*step 7"):
        trackway_dcp.StorageReader(root).read_metadata()


def test_what_dcp_cannot_do_is_reported(attempt, tmp_path, monkeypatch, recwarn):
    """Proves the errors of a save without a step, of other ranks than the launcher's and of what is not there to be
    loaded, that they leave nothing half saved, and that outside an attempt nothing is saved."""
    import trackway

    run = attempt()
    state = {"w": torch.ones(2)}

    def why(function, *arguments, **named):
        with pytest.raises((dcp.api.CheckpointException, InputError)) as caught:
            function(*arguments, **named)
        return str(caught.value)

    assert "the step is not known" in why(dcp.save, state, storage_writer=trackway_dcp.StorageWriter(run))
    assert "no committed checkpoint yet" in why(dcp.load, state, storage_reader=trackway_dcp.StorageReader(run))
    refused = {"w": torch.sparse_coo_tensor([[0]], [1.0], (2,))}
    assert "sparse" in why(dcp.save, refused, storage_writer=trackway_dcp.StorageWriter(run, 1))
    run.checkpoint(2, state={"params": {"w": torch.ones(2)}}, force=True, wait=True)
    assert "not saved through" in why(dcp.load, state, storage_reader=trackway_dcp.StorageReader(attempt(epoch=2)))
    root = tmp_path / "checkpoints"
    assert "of step 5" in why(dcp.load, state, storage_reader=trackway_dcp.StorageReader(root, step=5))
    alone = attempt(epoch=3, RANK=0, WORLD_SIZE=2)
    assert "rank 0 of 1, and Trackway rank 0 of 2" in why(
        dcp.save, state, storage_writer=trackway_dcp.StorageWriter(alone, 3)
    )
    for name in ("TRACKWAY_RUN", "TRACKWAY_ATTEMPT", "TRACKWAY_CHECKPOINTS", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name)
    outside = trackway.attach()
    dcp.save(state, storage_writer=trackway_dcp.StorageWriter(outside, 9))
    assert trackway_dcp.resume(outside, state) == 1 and not trackway_dcp.save(outside, 1, state, force=True)
    assert [step for step, state in states(root) if state == "committed"] == [2]
