"""`run.save_model`: files that a library wrote itself, committed as checkpoints of the run (docs/python.md)."""

import contextlib
import json
import os
import threading

import flight_record
import numpy
import pytest
from conftest import attempt_environment, need, newest

import trackway
from trackway import CheckpointError, FencedError, InputError, checkpoint
from trackway._state.model_files import FILES_MAX, model_files


def manifest(tmp_path):
    return json.loads((newest(tmp_path / "checkpoints") / "manifest.json").read_text())


def kinds(tmp_path):
    return {file["name"]: file["kind"] for file in manifest(tmp_path)["files"]}


def test_a_file_is_committed_as_it_was(attempt, tmp_path):
    """Proves that a file is committed with its bytes, metrics and the last recorded step when the call returns, that what the
    script does to it afterwards changes nothing, and that the checkpoint consists of weights alone."""
    run = attempt()
    model = tmp_path / "model.ubj"
    model.write_bytes(b"{U" * 3_000_000)
    run.log(40, loss=0.5)
    assert run.save_model(model, metrics={"accuracy": numpy.float32(0.5)})
    model.write_bytes(b"other")
    stored = newest(tmp_path / "checkpoints")
    assert (stored / "model.ubj").read_bytes() == b"{U" * 3_000_000
    [kept] = checkpoint.list(tmp_path / "checkpoints")
    assert (kept.step, kept.state, manifest(tmp_path)["metrics"]) == (40, "committed", {"accuracy": 0.5})
    assert kinds(tmp_path) == {"model.ubj": "weights"}
    assert checkpoint.verify(tmp_path / "checkpoints") == {40: None}
    model.unlink()
    assert run.save_model([stored / "model.ubj"], step=41, name="again.ubj")
    assert kinds(tmp_path) == {"again.ubj": "weights"}


def test_a_folder_keeps_the_names_of_its_files(attempt, tmp_path):
    """Proves that files directly in a folder keep their names, that others have legal ones that differ, and that a script without
    any step saves at step 0."""
    run = attempt()
    folder = tmp_path / "saved"
    for path in ["config.json", "model.safetensors", "1_Pooling/config.json", ".gitattributes", "ö.txt"]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)
    assert run.save_model(str(folder))
    names = {"config.json", "model.safetensors", "1_Pooling-config.json", "_.gitattributes", "_.txt"}
    assert set(kinds(tmp_path)) == names
    stored = newest(tmp_path / "checkpoints")
    assert (stored / "1_Pooling-config.json").read_text() == "1_Pooling/config.json"
    assert checkpoint.list(tmp_path / "checkpoints")[-1].step == 0
    assert run.save_model(folder, name="bert")
    assert "bert-config.json" in kinds(tmp_path)


def test_names_need_not_be_text(attempt, tmp_path):
    """Proves that a file whose name is not UTF-8 is committed, and that a report of such a path names it with an escape."""
    run = attempt()
    folder = tmp_path / os.fsdecode(b"run\xe9")
    folder.mkdir()
    (folder / os.fsdecode(b"vocab-\xff.txt")).write_text("words")
    assert run.save_model(folder)
    assert set(kinds(tmp_path)) == {"vocab-_xff.txt"}
    run.wrote_checkpoint(folder / os.fsdecode(b"vocab-\xff.txt"), step=3)
    run._finish()
    events = flight_record.read(tmp_path / "record-1").events
    [(step, path)] = [(step, fields["path"]) for kind, step, fields in events if kind == "checkpoint_written"]
    assert (step, path) == (3, f"{os.path.realpath(tmp_path)}/run\\xe9/vocab-\\xff.txt")


def test_training_continues_from_it_if_it_has_the_state(attempt, tmp_path):
    """Proves that the components passed to `resume` are saved with the files, so that the next attempt continues from them, and
    that a file which has the name of one of theirs is refused without a checkpoint."""
    run = attempt()
    state = {"n": 3}
    run.resume(values=state)
    (tmp_path / "model.txt").write_text("tree")
    (tmp_path / "values.json").write_text("{}")
    with pytest.raises(InputError, match="component `values`"):
        run.save_model(tmp_path / "values.json", step=3)
    assert run.save_model(tmp_path / "model.txt", step=3)
    assert kinds(tmp_path) == {
        "model.txt": "weights", "values.json": "other", "rng.json": "rng", "cursor.json": "data_cursor",
    }  # fmt: skip
    again = attempt(epoch=2)
    back = {"n": 0}
    assert again.resume(values=back) == 4 and back == {"n": 3}
    assert len(checkpoint.list(tmp_path / "checkpoints")) == 1


def test_paths_that_cannot_be_saved(attempt, tmp_path):
    """Proves that a missing path, an empty folder, a link to a folder, too many files and a name that is not allowed are refused
    with the path, that nothing is committed, and that the next save works."""
    run = attempt()
    empty, linked, model = tmp_path / "empty", tmp_path / "linked", tmp_path / "model.txt"
    empty.mkdir()
    linked.mkdir()
    (linked / "elsewhere").symlink_to(empty)
    model.write_text("tree")
    for paths, why in [
        (tmp_path / "none.joblib", "none.joblib` is not a file or folder"),
        (empty, "no file to save in `.*empty`"),
        ([], "no file to save"),
        (linked, "elsewhere` is a link to a folder"),
    ]:
        with pytest.raises(InputError, match=why):
            run.save_model(paths)
    with pytest.raises(InputError, match="a/b"):
        run.save_model(model, name="a/b")
    with pytest.raises(InputError, match="metrics"):
        run.save_model(model, metrics={"accuracy": "high"})
    for number in range(FILES_MAX + 1):
        (empty / str(number)).touch()
    with pytest.raises(InputError, match=f"at most {FILES_MAX}"):
        model_files(empty)
    assert [one for one in checkpoint.list(tmp_path / "checkpoints") if one.state == "committed"] == []
    assert run.save_model(model)


def test_a_file_that_changes_meanwhile_is_not_committed(attempt, tmp_path):
    """Proves that while a thread writes to the file in place, a save either raises or commits what verifies, and that the next
    one works."""
    run = attempt()
    model = tmp_path / "model.bin"
    size = 24 << 20
    model.write_bytes(bytes(size))
    done = threading.Event()

    def change():
        value = 0
        while not done.is_set():
            value = (value + 1) % 256
            with model.open("r+b") as file:
                for at in (0, size - 1):
                    file.seek(at)
                    file.write(bytes([value]))

    writer = threading.Thread(target=change)
    writer.start()
    for step in range(1, 6):
        with contextlib.suppress(CheckpointError):
            run.save_model(model, step=step)
    done.set()
    writer.join()
    assert run.save_model(model, step=9)
    assert set(checkpoint.verify(tmp_path / "checkpoints").values()) == {None}
    assert (newest(tmp_path / "checkpoints") / "model.bin").read_bytes() == model.read_bytes()


def test_an_attempt_that_was_replaced_commits_nothing(attempt, tmp_path):
    """Proves that a save of an older attempt raises FencedError."""
    (tmp_path / "model.txt").write_text("tree")
    older = attempt()
    assert older.save_model(tmp_path / "model.txt", step=1)
    newer = attempt(epoch=2)
    assert newer.save_model(tmp_path / "model.txt", step=2)
    with pytest.raises(FencedError):
        older.save_model(tmp_path / "model.txt", step=3)
    assert [one.step for one in checkpoint.list(tmp_path / "checkpoints") if one.state == "committed"] == [2]


def test_outside_an_attempt_nothing_is_saved(tmp_path, monkeypatch):
    """Proves that a script runs without Trackway, and in an attempt without a place for checkpoints."""
    assert trackway.attach().save_model(tmp_path / "none.joblib") is False
    for name, value in attempt_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TRACKWAY_CHECKPOINTS")
    run = trackway.attach()
    assert run.save_model(tmp_path / "none.joblib") is False
    run._finish()


@pytest.mark.parametrize("library", ["sklearn", "xgboost", "lightgbm"])
def test_models_of_libraries_come_back(attempt, tmp_path, library):
    """Proves that a model of each library predicts the same when it is loaded from the checkpoint."""
    draw = numpy.random.default_rng(7)
    x = draw.normal(size=(300, 4))
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    run = attempt()
    path = tmp_path / {"sklearn": "model.joblib", "xgboost": "model.ubj", "lightgbm": "model.txt"}[library]
    if library == "sklearn":
        need("sklearn")
        import joblib
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression().fit(x, y)
        joblib.dump(model, path)
        load = joblib.load
    elif library == "xgboost":
        xgboost = need("xgboost")
        model = xgboost.train({"nthread": 1}, xgboost.DMatrix(x, y), num_boost_round=5)
        model.save_model(path)
        load = lambda path: xgboost.Booster(model_file=path)  # noqa: E731
        x = xgboost.DMatrix(x)
    else:
        lightgbm = need("lightgbm")
        model = lightgbm.train({"num_threads": 1, "verbose": -1}, lightgbm.Dataset(x, y), num_boost_round=5)
        model.save_model(path)
        load = lambda path: lightgbm.Booster(model_file=path)  # noqa: E731
    assert run.save_model(path, step=5)
    expected = model.predict(x)
    path.unlink()
    again = load(newest(tmp_path / "checkpoints") / path.name)
    assert numpy.array_equal(again.predict(x), expected)
