"""What the modules for frameworks use of a run: saves with further files, drafts, and what was committed."""

import numpy
import pytest

import trackway
from trackway._run.adapter import SaveSession, before_finish, committed_in, load_number, load_step, rank_of

PARAMS = {"params": {"w": numpy.arange(4.0)}}


def test_outside_an_attempt_an_adapter_saves_nothing(monkeypatch):
    """Proves that outside an attempt an adapter lets its framework save, and that nothing is due."""
    monkeypatch.delenv("TRACKWAY_ATTEMPT", raising=False)
    session = SaveSession(trackway.attach())
    assert not session.saves and not session.only_observes and not session.due(1, force=True)
    assert (session.rank, session.world_size, session.saved_step) == (0, 1, None)


def test_a_save_with_files_is_one_checkpoint(attempt):
    """Proves that components and files are committed together, are found by step and number, and are what the next attempt
    begins with, until it saves itself."""
    session = SaveSession(attempt())
    assert session.saves and session.newest() is None and session.resumed_folder() is None
    session.save(3, PARAMS, files={"framework.json": b"{}"}, wait=True)
    assert session.saved_step == 3 and not session.due(3, force=True) and session.due(4, force=True)
    (committed,) = committed_in(session.root)
    by_step, by_number = load_step(session.root, 3), load_number(session.root, committed.number)
    assert by_step.loaded.folder == by_number.loaded.folder and load_step(session.root, 4) is None
    assert bytes(memoryview(by_step.take("framework.json"))) == b"{}" and "params.json" in dict(by_step.files)

    session = SaveSession(attempt(epoch=2))
    source = session.newest()
    assert source.loaded.step == 3 and session.begins_with(source) and session.resumed_folder() == by_step.loaded.folder
    session.save(5, PARAMS, wait=True)
    assert not session.begins_with(source)
    assert [one.step for one in committed_in(session.root)] == [3, 5]


def test_a_save_that_fails_does_not_stop_the_next(attempt):
    """Proves that a draft is dropped whose file or component cannot be stored, so that the next save begins a new one."""
    session = SaveSession(attempt())
    with pytest.raises(trackway.InputError):
        session.save(1, PARAMS, files={"": b"a file without a name"})
    with pytest.raises(trackway.InputError, match="params"):
        session.save(1, {"params": {"w": object()}})
    draft = session.open(2, PARAMS)
    draft.bytes("framework.json", "other", b"{}")
    session.submit(draft, 2, metrics=[("loss", 0.5)], wait=True)
    assert [(one.step, one.state) for one in committed_in(session.root)] == [(2, "committed")]


def test_what_is_recorded_at_the_end(attempt):
    """Proves that what an adapter registers is called once, before the record is closed."""
    run, called = attempt(), []
    before_finish(run, lambda: called.append(rank_of(run)))
    run.finish()
    run.finish()
    assert called == [0]
