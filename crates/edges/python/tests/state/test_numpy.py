"""Checkpoints of NumPy arrays, without a run."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import safetensors.numpy
from conftest import bits, newest

import trackway
from trackway import FencedError, InputError, IntegrityError, checkpoint

DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
]  # fmt: skip
SHAPES = [(), (0,), (3, 0, 2), (1,), (7,), (2, 3, 5)]


def noise(dtype, shape):
    """Every bit pattern may occur, NaNs of all kinds included."""
    count = numpy.dtype(dtype).itemsize * int(numpy.prod(shape))
    content = numpy.random.default_rng(3).integers(0, 2 if dtype == "bool" else 256, count, dtype=numpy.uint8)
    return content.view(dtype).reshape(shape).copy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_arrays_come_back_bit_for_bit(tmp_path, dtype, shape):
    """Proves that shape, dtype and every bit survive, also of 0-d and empty arrays."""
    array = noise(dtype, shape)
    checkpoint.save(tmp_path, {"params": {"a": array}}, step=1)
    found = checkpoint.load(tmp_path)["params"]["a"]
    assert (found.dtype, found.shape, bits(found)) == (array.dtype, array.shape, bits(array))
    target = {"params": {"a": numpy.ones_like(array)}}
    inner = target["params"]["a"]
    checkpoint.load(tmp_path, into=target)
    assert target["params"]["a"] is inner and bits(inner) == bits(array)


def test_views_and_foreign_byte_order(tmp_path):
    """Proves that arrays which are no plain block of memory are stored by their values."""
    base = numpy.arange(24.0).reshape(2, 3, 4)
    state = {
        "turned": base.transpose(2, 0, 1), "every_other": base[:, ::2], "backwards": base[::-1],
        "spread": numpy.broadcast_to(numpy.float32(2), (3, 3)), "big_endian": base.astype(">f8"),
    }  # fmt: skip
    checkpoint.save(tmp_path, {"params": state}, step=1)
    found = checkpoint.load(tmp_path)["params"]
    assert list(found) == list(state)
    assert all(numpy.array_equal(found[name], state[name]) for name in state)


def test_scalars_of_numpy(tmp_path):
    """Proves that NumPy's scalars stay what they are: a float64 is not a float."""
    state = {"a": numpy.float64(0.1), "b": numpy.int32(-5), "c": numpy.bool_(True), "d": numpy.float32("nan")}
    checkpoint.save(tmp_path, {"values": state}, step=1)
    found = checkpoint.load(tmp_path)["values"]
    assert {name: type(value) for name, value in found.items()} == {n: type(v) for n, v in state.items()}
    assert [bits(value) for value in found.values()] == [bits(value) for value in state.values()]


def test_generators_of_numpy(tmp_path):
    """Proves that generators of every kind continue where they were, new ones and given ones."""
    kinds = [numpy.random.PCG64, numpy.random.MT19937, numpy.random.Philox, numpy.random.SFC64]
    state = {kind.__name__: numpy.random.Generator(kind(5)) for kind in kinds}
    state["old"] = numpy.random.RandomState(6)
    for generator in state.values():
        generator.standard_normal(3)
    checkpoint.save(tmp_path, state, step=1)
    expected = [bits(generator.standard_normal(4)) for generator in state.values()]
    assert [bits(generator.standard_normal(4)) for generator in checkpoint.load(tmp_path).values()] != []
    found = checkpoint.load(tmp_path)
    assert [bits(found[name].standard_normal(4)) for name in state] == expected
    checkpoint.load(tmp_path, into=state)
    assert [bits(generator.standard_normal(4)) for generator in state.values()] == expected


def test_the_process_generators(tmp_path):
    """Proves that the global generators of Python and NumPy can be a component."""
    import random

    checkpoint.save(tmp_path, {"rng": trackway.ProcessRng()}, step=1)
    expected = random.random(), numpy.random.rand()
    checkpoint.load(tmp_path, into={"rng": trackway.ProcessRng()})
    assert (random.random(), numpy.random.rand()) == expected


def test_plain_safetensors_opens_the_files(tmp_path):
    """Proves that the safetensors package reads them, under the names of the state, with the data on a block."""
    array = numpy.arange(10, dtype=numpy.float32)
    checkpoint.save(tmp_path, {"params": {"layer": [{"w": array}, {"w": array + 1}]}}, step=3)
    file = newest(tmp_path) / "params.safetensors"
    tensors = safetensors.numpy.load_file(file)
    assert sorted(tensors) == ["layer.0.w", "layer.1.w"]
    assert bits(tensors["layer.1.w"]) == bits(array + 1)
    header_bytes = int.from_bytes(file.read_bytes()[:8], "little")
    assert (8 + header_bytes) % 4096 == 0


def test_one_array_under_two_names_is_stored_once(tmp_path):
    """Proves that tied tensors are written once and are one again after loading."""
    array = numpy.arange(6.0)
    checkpoint.save(tmp_path, {"params": {"a": array, "b": array, "c": array[1:]}}, step=1)
    assert sorted(safetensors.numpy.load_file(newest(tmp_path) / "params.safetensors")) == ["a", "c"]
    loaded = checkpoint.load(tmp_path)["params"]
    assert loaded["a"] is loaded["b"]


def test_a_state_needs_no_form(tmp_path):
    """Proves that a flat dict, a mixed one and a single list come back in the form they had."""
    flat = {"a.weight": numpy.ones(2), "b/c": numpy.zeros(3)}
    mixed = {"params": {"w": numpy.ones(1)}, "step": 4, "name": "x"}
    for number, state in enumerate([flat, mixed, [1, numpy.ones(2)]]):
        checkpoint.save(tmp_path / str(number), state, step=1)
        found = checkpoint.load(tmp_path / str(number))
        assert type(found) is type(state) and list(found)[:1] == list(state)[:1] or number == 1
        if isinstance(state, dict):
            assert set(found) == set(state)


def test_every_bit_counts(tmp_path):
    """Proves that one flipped bit in any file is found, and that loading steps back to the checkpoint before."""
    for step in (1, 2):
        # Every file differs: what is equal in both is one file with two names, and its damage would be in both.
        checkpoint.save(tmp_path, {"params": {"a": numpy.full(5000, step), "n": step}, "n": step}, step=step)
    folder = newest(tmp_path)
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["manifest.json", "params.json", "params.safetensors", "state.json"]
    for file in files:
        whole = bytearray(file.read_bytes())
        whole[len(whole) // 2] ^= 4
        file.write_bytes(whole)
        assert checkpoint.load(tmp_path)["n"] == 1
        problems = checkpoint.verify(tmp_path)
        assert problems[1] is None and file.name in problems[2]
        with pytest.raises(IntegrityError, match=file.name.replace(".", r"\.")):
            checkpoint.load(tmp_path, step=2)
        whole[len(whole) // 2] ^= 4
        file.write_bytes(whole)
    assert checkpoint.load(tmp_path)["n"] == 2


def test_nothing_verifies(tmp_path):
    """Proves that damage everywhere is an error, never a fresh start."""
    checkpoint.save(tmp_path, {"n": 1}, step=1)
    (newest(tmp_path) / "state.json").unlink()
    with pytest.raises(IntegrityError, match="nothing to resume from"):
        checkpoint.load(tmp_path)


def test_steps_can_be_chosen(tmp_path):
    """Proves that an older step can be loaded, and that a wrong one is answered with those there are."""
    for step in (10, 20, 30):
        checkpoint.save(tmp_path, {"n": step}, step=step, metrics={"loss": 1 / step})
    assert checkpoint.load(tmp_path, step=20)["n"] == 20
    assert [(one.step, one.state) for one in checkpoint.list(tmp_path)] == [
        (10, "superseded"), (20, "superseded"), (30, "committed"),
    ]  # fmt: skip
    with pytest.raises(InputError, match="10, 20, 30"):
        checkpoint.load(tmp_path, step=25)


def test_the_last_process_to_save_owns_the_folder(tmp_path):
    """Proves that a process that was replaced learns it at its next save."""
    checkpoint.save(tmp_path, {"n": 1}, step=1)
    code = f"from trackway import checkpoint; checkpoint.save({str(tmp_path)!r}, {{'n': 2}}, step=2)"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(FencedError, match="must stop"):
        checkpoint.save(tmp_path, {"n": 3}, step=3)
    assert checkpoint.load(tmp_path)["n"] == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda path: checkpoint.load(path), ["holds no committed checkpoint"]),
        (
            lambda path: checkpoint.save(path, {"params": {"a": numpy.array([object()])}}, step=1),
            ["params.a", "object"],
        ),
        (lambda path: checkpoint.save(path, {"params": {"a": numpy.array(["x"])}}, step=1), ["params.a", "<U1"]),
        (lambda path: checkpoint.save(path, {"n": 1}, step=-1), ["-1", "negative"]),
        (lambda path: checkpoint.save(path, {"n": 1}, step="x"), ["whole number"]),
        (lambda path: checkpoint.save(path, {}, step=1) or checkpoint.load(path, framework="tf"), ["'tf'"]),
    ],
)
def test_wrong_input_is_reported(tmp_path, call, words):
    """Proves that a mistake is answered with what is wrong and where."""
    with pytest.raises(InputError) as caught:
        call(tmp_path)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("into", "words"),
    [
        ({"params": {"a": numpy.ones((2, 3))}}, ["params.a", "(4,)", "(2, 3)"]),
        ({"params": {"a": numpy.ones(4, "float32")}}, ["params.a", "float64", "float32"]),
        ({"params": {"b": numpy.ones(4)}}, ["params", "`b`", "`a`"]),
        ({"other": {"a": numpy.ones(4)}}, ["`other`", "`params`"]),
    ],
)
def test_what_does_not_fit_is_reported(tmp_path, into, words):
    """Proves that loading into another form names the difference."""
    checkpoint.save(tmp_path, {"params": {"a": numpy.ones(4)}}, step=1)
    with pytest.raises(InputError) as caught:
        checkpoint.load(tmp_path, into=into)
    assert all(word in str(caught.value) for word in words), caught.value


def test_files_of_others(tmp_path):
    """Proves that a checkpoint that was not written from Python can be read: the root of the test vectors."""
    vectors = Path(__file__).parents[5] / "docs/formats/vectors/checkpoint/root"
    found = checkpoint.load(vectors)
    assert found and all(isinstance(name, str) for name in found)


HOSTILE = [
    b"", b"\x00" * 7, b"\xff" * 8, (8).to_bytes(8, "little") + b"{}", (2).to_bytes(8, "little") + b"[]",
    *(
        len(text := json.dumps(header).encode()).to_bytes(8, "little") + text + b"\x00" * 8
        for header in [
            {"a": 1}, {"a": {}}, {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 9]}},
            {"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}},
            {"a": {"dtype": "F32", "shape": [True, 2], "data_offsets": [0, 8]}},
            {"a": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}},
            {"a": {"dtype": "F32", "shape": [1 << 62, 4], "data_offsets": [0, 8]}},
            {"a": {"dtype": "X", "shape": [2], "data_offsets": [0, 8]}},
            {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0.0, 8.0]}},
        ]
    ),
]  # fmt: skip


@pytest.mark.parametrize("content", HOSTILE, ids=lambda content: repr(content[8:60]))
def test_hostile_headers_are_refused(content):
    """Proves that no header leads outside of its file."""
    from trackway._state import state as _state

    with pytest.raises(IntegrityError, match="not a valid safetensors file"):
        for stored in _state.tensors_in("x.safetensors", bytearray(content)).values():
            trackway._state.arrays.build("numpy", stored)


def test_import_is_light():
    """Proves that `import trackway` brings in no framework."""
    code = "import sys, trackway; assert not {'numpy', 'torch', 'jax', 'safetensors', 'pickle'} & set(sys.modules)"
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_what_is_kept(tmp_path):
    """Proves that `keep` deletes what no rule wants, and never goes below two."""
    for step in range(1, 8):
        rules = checkpoint.Keep(last=2, every=3, best="loss")
        checkpoint.save(tmp_path, {"n": step}, step=step, metrics={"loss": abs(step - 2)}, keep=rules)
    kept = [one.step for one in checkpoint.list(tmp_path) if one.state in ("committed", "superseded")]
    assert kept == [2, 3, 6, 7]
    checkpoint.save(tmp_path, {"n": 8}, step=8, keep=1)
    assert [one.step for one in checkpoint.list(tmp_path) if one.state in ("committed", "superseded")] == [7, 8]
    assert checkpoint.load(tmp_path, step=7)["n"] == 7


def test_saving_behind_the_loop(tmp_path):
    """Proves that a tensor may change as soon as `save` returns, and that errors behind the loop are raised later."""
    array = numpy.zeros(1_000_000)
    for step in range(1, 4):
        array[:] = step
        checkpoint.save(tmp_path, {"params": {"a": array}}, step=step, wait=False)
        array[:] = -1
    checkpoint.wait_for(tmp_path)
    assert [float(checkpoint.load(tmp_path, step=step)["params"]["a"].max()) for step in (1, 2, 3)] == [1, 2, 3]
    os.chmod(tmp_path, 0o500)
    if os.access(tmp_path, os.W_OK):
        return  # root may write everywhere
    checkpoint.save(tmp_path, {"n": 4}, step=4, wait=False)
    with pytest.raises(trackway.StorageError):
        checkpoint.wait_for(tmp_path)


def test_an_evaluator_is_given_one_checkpoint(tmp_path, monkeypatch):
    """Proves that an evaluator reads the checkpoint it is to evaluate, and not a newer one beside it."""
    for step in (1, 2):
        checkpoint.save(tmp_path, {"model": {"weights": numpy.full(3, step)}}, step=step)
    with pytest.raises(InputError, match="TRACKWAY_CHECKPOINT_DIR"):
        checkpoint.given()
    folder, manifest = _first(tmp_path)
    monkeypatch.setenv("TRACKWAY_CHECKPOINT_DIR", str(folder))
    assert checkpoint.given()["model"]["weights"].tolist() == [1, 1, 1]  # by hand: the log beside it vouches
    monkeypatch.setenv("TRACKWAY_CHECKPOINT_MANIFEST_SHA256", manifest)
    assert checkpoint.given()["model"]["weights"].tolist() == [1, 1, 1]
    into = {"model": {"weights": numpy.zeros(3, dtype=numpy.int64)}}
    assert checkpoint.given(into=into)["model"]["weights"].tolist() == [1, 1, 1]
    monkeypatch.setenv("TRACKWAY_CHECKPOINT_DIR", str(folder.parent / "epoch-nowhere"))
    with pytest.raises(IntegrityError, match=r"`manifest.json` is missing"):
        checkpoint.given()


def test_a_checkpoint_that_was_fetched_is_given(tmp_path, monkeypatch):
    """Proves that a copy without its log, as an evaluation fetches it from a remote, is loaded, and only if its manifest and every
    byte are those that were committed."""
    checkpoint.save(tmp_path, {"model": {"weights": numpy.full(3, 7)}}, step=1)
    folder, manifest = _first(tmp_path)
    copy = tmp_path / "evaluations" / "evl_1" / "checkpoint"
    shutil.copytree(folder, copy)
    monkeypatch.setenv("TRACKWAY_CHECKPOINT_DIR", str(copy))
    with pytest.raises(InputError, match="TRACKWAY_CHECKPOINT_MANIFEST_SHA256"):
        checkpoint.given()
    monkeypatch.setenv("TRACKWAY_CHECKPOINT_MANIFEST_SHA256", manifest)
    assert checkpoint.given()["model"]["weights"].tolist() == [7, 7, 7]
    tensors = copy / "model.safetensors"
    content = tensors.read_bytes()
    tensors.write_bytes(content[:-1] + b"\1")
    with pytest.raises(IntegrityError, match=r"`model.safetensors` has the hash"):
        checkpoint.given()
    tensors.write_bytes(content)
    monkeypatch.setenv("TRACKWAY_CHECKPOINT_MANIFEST_SHA256", "0" * 64)
    with pytest.raises(IntegrityError, match=r"`manifest.json` has the hash"):
        checkpoint.given()


def _first(root):
    """The folder of the first checkpoint of a root, and the SHA-256 of its manifest."""
    folder = root / checkpoint.list(root)[0].object_prefix
    return folder, hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
