"""PyTorch: every dtype, every kind of state, and N steps at once equal N steps with a resume in between."""

import gc
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import flight_record
import pytest
from conftest import attempt_environment, bits, need, newest

import trackway
from trackway import InputError, checkpoint

torch = need("torch")
need("numpy")
import safetensors.torch  # noqa: E402
import train_torch  # noqa: E402

DTYPES = [
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e8m0fnu",
]  # fmt: skip


def noise(dtype, shape):
    """Every bit pattern may occur, NaNs of all kinds included."""
    dtype = getattr(torch, dtype)
    count = torch.empty(shape, dtype=dtype).numel() * dtype.itemsize
    high = 2 if dtype is torch.bool else 256
    content = torch.randint(0, high, (count,), dtype=torch.uint8, generator=torch.Generator().manual_seed(4))
    return content.view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (5,), (2, 3, 5)], ids=str)
def test_tensors_come_back_bit_for_bit(tmp_path, dtype, shape):
    """Proves that shape, dtype and every bit survive, also of 0-d and empty tensors, and in place."""
    tensor = noise(dtype, shape)
    checkpoint.save(tmp_path, {"params": {"a": tensor}}, step=1)
    found = checkpoint.load(tmp_path)["params"]["a"]
    assert (found.dtype, found.shape, bits(found)) == (tensor.dtype, tensor.shape, bits(tensor))
    into = {"params": {"a": torch.zeros(shape, dtype=tensor.dtype)}}
    target = into["params"]["a"]
    checkpoint.load(tmp_path, into=into)
    assert into["params"]["a"] is target and bits(target) == bits(tensor)


def test_views_are_stored_by_their_values(tmp_path):
    """Proves that transposed, strided, expanded, conjugated and negated views come back with their values."""
    base = torch.arange(24.0).view(2, 3, 4)
    complex_base = torch.complex(base, base + 1)
    state = {
        "turned": base.permute(2, 0, 1), "every_other": base[:, ::2], "spread": torch.ones(1).expand(3, 3),
        "conjugate": complex_base.conj(), "negative": complex_base.conj().imag, "inner": base[1, 1:],
        "half": base.to(torch.bfloat16).t() if base.dim() == 2 else base.to(torch.bfloat16).transpose(0, 1),
    }  # fmt: skip
    checkpoint.save(tmp_path, {"params": state}, step=1)
    found = checkpoint.load(tmp_path)["params"]
    assert all(torch.equal(found[name], state[name]) for name in state)


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(7, 4)
        self.head = torch.nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight


def test_tied_weights_are_stored_once(tmp_path):
    """Proves that a tied weight is written once, named as safetensors does it, and tied after loading."""
    model = Tied()
    checkpoint.save(tmp_path, {"model": model}, step=1)
    with safetensors.safe_open(newest(tmp_path) / "model.safetensors", "pt") as file:
        assert list(file.keys()) == ["embedding.weight"]
        assert file.metadata() == {"head.weight": "embedding.weight"}
    other = Tied()
    checkpoint.load(tmp_path, into={"model": other})
    assert other.head.weight is other.embedding.weight
    assert bits(other.head.weight) == bits(model.head.weight)
    loaded = checkpoint.load(tmp_path)["model"]
    assert loaded["head.weight"] is loaded["embedding.weight"]


def test_the_files_are_plain_safetensors(tmp_path):
    """Proves that `safetensors.torch.load_file` and `load_state_dict` need no Trackway."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    checkpoint.save(tmp_path, {"model": model}, step=1)
    loaded = safetensors.torch.load_file(newest(tmp_path) / "model.safetensors")
    assert set(loaded) == set(model.state_dict())
    torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).load_state_dict(loaded)


def test_the_optimizer_has_the_names_of_parameters(tmp_path):
    """Proves that moments are stored under the names of the parameters they belong to."""
    model, optimizer, *_ = train_torch.parts()
    train_torch.update(model, optimizer, *train_torch.parts()[2:4], (torch.randn(4, 6), torch.tensor([0, 1, 2, 0])))
    optimizer.step()
    checkpoint.save(tmp_path, {"model": model, "optimizer": optimizer}, step=1)
    names = safetensors.torch.load_file(newest(tmp_path) / "optimizer.safetensors")
    assert {"state.0.weight.exp_avg", "state.3.bias.exp_avg_sq", "state.1.weight.step"} <= set(names)


def test_an_optimizer_with_its_parameters_in_another_order(tmp_path):
    """Proves that moments find their parameter by name when the groups list them differently."""
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.Adam([model.weight, model.bias])
    model(torch.randn(2, 3)).square().sum().backward()
    optimizer.step()
    checkpoint.save(tmp_path, {"model": model, "optimizer": optimizer}, step=1)
    turned = torch.optim.Adam([model.bias, model.weight])
    checkpoint.load(tmp_path, into={"model": model, "optimizer": turned})
    assert turned.state[model.bias]["exp_avg"].shape == (3,)
    assert bits(turned.state[model.weight]["exp_avg"]) == bits(optimizer.state[model.weight]["exp_avg"])
    with pytest.raises(InputError, match="other parameters"):
        fewer = torch.optim.Adam([{"params": [model.bias]}, {"params": [model.weight]}])
        checkpoint.load(tmp_path, into={"model": model, "optimizer": fewer})


class DistributedDataParallel(torch.nn.Module):
    """Has the name and the attribute of the real one, which needs a process group."""

    def __init__(self, module):
        super().__init__()
        self.module = module


def test_wrappers_leave_no_trace(tmp_path):
    """Proves that names carry no `module.` and `_orig_mod.`, and that a state fits with and without wrappers."""
    plain = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2))
    inner = torch.nn.Sequential(torch.compile(torch.nn.Linear(2, 3)), torch.nn.Linear(3, 2))
    wrapped = DistributedDataParallel(torch.compile(inner))
    checkpoint.save(tmp_path, {"model": wrapped}, step=1)
    names = safetensors.torch.load_file(newest(tmp_path) / "model.safetensors")
    assert set(names) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    for target in (plain, torch.compile(plain), DistributedDataParallel(plain), wrapped):
        checkpoint.load(tmp_path, into={"model": target})
        assert bits(plain[0].weight) == bits(inner[0]._orig_mod.weight)
    checkpoint.save(tmp_path / "raw", {"model": dict(wrapped.module._orig_mod.state_dict(prefix="module."))}, step=1)
    checkpoint.load(tmp_path / "raw", into={"model": plain})


def test_loading_makes_views(tmp_path):
    """Proves that tensors are views of the bytes that were read: one buffer, no second copy."""
    checkpoint.save(tmp_path, {"params": {"a": torch.ones(3000), "b": torch.ones(3000)}}, step=1)
    found = checkpoint.load(tmp_path)["params"]
    distance = found["b"].data_ptr() - found["a"].data_ptr()
    assert abs(distance) == 12_000
    found["a"].add_(1)
    del found["b"]
    gc.collect()
    assert float(found["a"].sum()) == 6000


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.ones(2, 2).to_sparse(), ["params.a", "sparse"]),
        (torch.empty(2, device="meta"), ["params.a", "meta"]),
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), ["params.a", "quantized"]),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_tensors_that_cannot_be_kept(tmp_path, value, words):
    """Proves that the message names the place and the kind of tensor, and that nothing was saved."""
    with pytest.raises(InputError) as caught:
        checkpoint.save(tmp_path, {"params": {"a": value}}, step=1)
    assert all(word in str(caught.value) for word in words), caught.value
    assert all(one.state == "abandoned" or one.state == "writing" for one in checkpoint.list(tmp_path))


def test_another_model_is_reported(tmp_path):
    """Proves that a model which does not fit is named with what differs."""
    checkpoint.save(tmp_path, {"model": torch.nn.Linear(2, 2)}, step=1)
    with pytest.raises(InputError, match=r"(?s)model \(Linear\) does not take.*size mismatch"):
        checkpoint.load(tmp_path, into={"model": torch.nn.Linear(2, 3)})


SCHEDULERS = {
    "StepLR": {"step_size": 2}, "MultiStepLR": {"milestones": [2, 4]}, "ExponentialLR": {"gamma": 0.9},
    "CosineAnnealingLR": {"T_max": 9}, "CosineAnnealingWarmRestarts": {"T_0": 3}, "LinearLR": {}, "PolynomialLR": {},
    "CyclicLR": {"base_lr": 0.1, "max_lr": 0.2}, "OneCycleLR": {"max_lr": 0.1, "total_steps": 20},
    "ReduceLROnPlateau": {}, "LambdaLR": {"lr_lambda": lambda epoch: 0.9**epoch},
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_continues(tmp_path, name):
    """Proves that a scheduler of PyTorch continues with the same rates after a round trip."""

    def make():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
        return optimizer, getattr(torch.optim.lr_scheduler, name)(optimizer, **SCHEDULERS[name])

    def go_on(optimizer, scheduler):
        rates = []
        for _ in range(4):
            optimizer.step()
            scheduler.step(*([1.0] if name == "ReduceLROnPlateau" else []))
            rates.append(optimizer.param_groups[0]["lr"])
        return rates

    optimizer, scheduler = make()
    go_on(optimizer, scheduler)
    checkpoint.save(tmp_path, {"optimizer": optimizer, "scheduler": scheduler}, step=1)
    expected = go_on(optimizer, scheduler)
    optimizer, scheduler = make()
    checkpoint.load(tmp_path, into={"optimizer": optimizer, "scheduler": scheduler})
    assert go_on(optimizer, scheduler) == expected


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "LBFGS"])
def test_every_optimizer_continues(tmp_path, name):
    """Proves that an optimizer of PyTorch makes the same updates after a round trip."""

    def make():
        torch.manual_seed(1)
        model = torch.nn.Linear(3, 2)
        more = {"momentum": 0.9} if name == "SGD" else {}
        return model, getattr(torch.optim, name)(model.parameters(), lr=0.01, **more)

    def go_on(model, optimizer):
        def closure():
            optimizer.zero_grad()
            loss = model(torch.ones(4, 3)).square().sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return [bits(parameter) for parameter in model.parameters()]

    model, optimizer = make()
    go_on(model, optimizer)
    checkpoint.save(tmp_path, {"model": model, "optimizer": optimizer}, step=1)
    expected = go_on(model, optimizer)
    model, optimizer = make()
    checkpoint.load(tmp_path, into={"model": model, "optimizer": optimizer})
    assert go_on(model, optimizer) == expected


# Exact resume. Batches per epoch: 11; so these stop before, at and behind the end of an epoch.


def own_generator():
    return torch.Generator().manual_seed(9)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("generator", [None, own_generator], ids=["process", "own"])
@pytest.mark.parametrize("half", [4, 11, 17, 22])
def test_a_resumed_training_is_the_same(attempt, half, generator, workers):
    """Proves that N steps equal N/2 steps, a save, a resume in a new attempt and the rest: weights, optimizer,
    schedule, scaler, random numbers, and the data with its order and noise."""
    make = generator or (lambda: None)
    total = 27
    whole = train_torch.train(trackway.attach(), total, generator=make(), workers=workers)
    train_torch.train(attempt(), half, generator=make(), workers=workers)
    resumed = attempt(epoch=2)
    found = train_torch.train(resumed, total, generator=make(), workers=workers)
    assert found == whole


def test_replay_can_be_spared(attempt):
    """Proves that skipping indexes gives the same batches where loading draws no random numbers."""
    data = torch.arange(40)
    loader = torch.utils.data.DataLoader(data, 4, shuffle=True)

    def batches(run, steps, **options):
        torch.manual_seed(5)
        run.resume()
        found = []
        for step, batch in run.batches(loader, steps=steps, **options):
            found.append(batch.tolist())
            run.checkpoint(step)
        return found

    whole = batches(trackway.attach(), 16)
    first = batches(attempt(), 13)
    assert first + batches(attempt(epoch=2), 16, replay=False) == whole


def test_data_that_changed_is_reported(attempt):
    """Proves that a shorter data set is named instead of being trained on from somewhere."""
    for epoch, count in ((1, 40), (2, 12)):
        run = attempt(epoch=epoch)
        run.resume()
        loader = torch.utils.data.DataLoader(torch.arange(count), 4)
        if epoch == 2:
            with pytest.raises(InputError, match="ended after 3 batches.*saved after 7"):
                list(run.batches(loader, steps=9))
            return
        for step, _ in run.batches(loader, steps=7):
            run.checkpoint(step)


class KeepsItsPlace:
    """A loader that keeps its position, like torchdata's StatefulDataLoader."""

    def __init__(self):
        self.next = 0

    def __iter__(self):
        while self.next < 10:
            self.next += 1
            yield self.next
        self.next = 0

    def state_dict(self):
        return {"next": self.next}

    def load_state_dict(self, state):
        self.next = state["next"]


def test_a_loader_that_keeps_its_place(attempt):
    """Proves that the position of a loader with state is saved and restored, without a replay."""
    run = attempt()
    run.resume()
    for step, _ in run.batches(KeepsItsPlace(), steps=14):
        run.checkpoint(step)
    run = attempt(epoch=2)
    assert run.resume() == 15
    assert list(run.batches(KeepsItsPlace(), steps=17)) == [(15, 5), (16, 6), (17, 7)]


@pytest.mark.parametrize("loader", [list(range(5)), tuple(range(5)), range(5)], ids=["list", "tuple", "range"])
def test_plain_iterables(attempt, loader):
    """Proves that lists and the like are numbered, gone through again as often as needed, and resumed in."""
    run = attempt()
    run.resume()
    first = []
    for step, item in run.batches(loader, steps=7):
        first.append((step, item))
        run.checkpoint(step)
    assert first == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 0), (7, 1)]
    run = attempt(epoch=2)
    assert list(run.batches(loader, start=run.resume(), steps=9)) == [(8, 2), (9, 3)]


# Real processes


def start_training(folder, epoch, steps, workers=0):
    environment = attempt_environment(folder, epoch, TRACKWAY_CHECKPOINT_EVERY_STEPS=3)
    script = Path(__file__).parents[1] / "scripts/train_torch.py"
    command = [sys.executable, str(script), str(steps), str(workers)]
    return subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)


def finish(process):
    output = process.communicate(timeout=600)[0]
    return output.split()[-1] if process.returncode == 0 else None


def test_kills_at_random_moments(tmp_path):
    """Proves with SIGKILLs at random times, most of them in the middle of a save, that no committed checkpoint is
    torn and that the training ends in the same state."""
    seed = int(os.environ.get("TRACKWAY_TEST_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    kills = int(os.environ.get("TRACKWAY_TEST_KILLS", "4"))
    print(f"seed {seed}")
    rng = random.Random(seed)
    steps = 60
    whole = finish(start_training(tmp_path / "whole", 1, steps))
    for epoch in range(1, kills + 1):
        process = start_training(tmp_path, epoch, steps)
        assert process.stdout.readline() == "attached\n"
        for _ in range(rng.randrange(1, 9)):
            process.stdout.readline()
        time.sleep(rng.random() * 0.03)
        process.send_signal(signal.SIGKILL)
        process.wait()
        problems = checkpoint.verify(tmp_path / "checkpoints")
        assert all(problem is None for problem in problems.values()), (seed, problems)
    assert finish(start_training(tmp_path, kills + 1, steps)) == whole, seed
    print(f"{kills} kills of a PyTorch script, seed {seed}")


def test_a_stop_is_answered_with_a_checkpoint(tmp_path):
    """Proves that SIGTERM to the whole process group, workers included, ends in a checkpoint of the step it reached,
    and that the next attempt continues there."""
    process = start_training(tmp_path, 1, 100_000, workers=2)
    lines = [process.stdout.readline() for _ in range(5)]
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in [process.pid, *map(int, children)]:
        os.kill(pid, signal.SIGTERM)
    output = ("".join(lines) + process.communicate(timeout=60)[0]).split()
    assert process.returncode == 0 and output[-2] == "digest"
    committed = [one.step for one in checkpoint.list(tmp_path / "checkpoints") if one.state == "committed"]
    assert committed == [int(output[-3])]


def test_forked_loader_workers_may_log(attempt, tmp_path):
    """Proves that what the forked workers of a loader log is recorded, whole, beside what the loop logs."""
    run = attempt()

    class Logging(torch.utils.data.Dataset):
        def __len__(self):
            return 200

        def __getitem__(self, index):
            run.log(index, decoded=index / 2)
            return index

    loader = torch.utils.data.DataLoader(Logging(), 10, num_workers=4, multiprocessing_context="fork")
    for step, batch in run.batches(loader):
        run.log(step, first=batch[0])
    run.finish()
    record = flight_record.read(tmp_path / "record-1")
    assert record.metric("decoded") == {index: index / 2 for index in range(200)}
    assert record.metric("first") == {step: (step - 1) * 10 for step in range(1, 21)}
    assert len(list((tmp_path / "record-1").glob("*.twfr"))) == 5
