"""The callbacks, each in a training with its real framework."""

import copy
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import flight_record
import numpy
import pytest
from conftest import attempt_environment, need

import trackway
from trackway import callbacks

os.environ["KERAS_BACKEND"] = "jax"
TIMES = {"step_seconds", "batch_wait_seconds", "samples_per_second"}
DIGESTS = {"batch_digest", "input_digest"}
GRADIENTS = {"grad_norm", "nonfinite_gradients"}


def record_of(folder):
    return flight_record.read(folder / "record-1")


def check_nothing_failed(record):
    assert "callback_failed" not in record.kinds(), record.events
    assert "value_unusable" not in record.kinds(), record.events


def written(record):
    """The checkpoints that were reported as finished, each of which is there."""
    found = [(Path(fields["path"]), step) for kind, step, fields in record.events if kind == "checkpoint_written"]
    assert all(path.exists() for path, _ in found), found
    return [(path.name, step) for path, step in found]


def ask_to_stop(folder):
    (folder / "control-1").write_text(json.dumps({"version": 1, "id": 1, "command": "stop"}) + "\n")
    time.sleep(0.15)  # it is looked at ten times a second


def test_importing_imports_no_framework():
    """Proves that the package and its callbacks are there without any framework being imported."""
    code = "import sys, trackway; print(sorted({'torch', 'jax', 'keras', 'sklearn', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


class Slow:
    """Batches that one has to wait for."""

    def __init__(self, batches, seconds=0.0):
        self.batches, self.seconds = batches, seconds

    def __iter__(self):
        for batch in self.batches:
            time.sleep(self.seconds)
            yield batch


def test_a_failing_callback_is_reported_once(attempt, tmp_path):
    """Proves that what fails in a callback never reaches the training, and is reported once for each hook."""
    from trackway.callbacks._watch import Watch, quiet

    class Broken(Watch):
        @quiet
        def hook(self):
            raise RuntimeError("no")

    run = attempt()
    watch = Broken(run)
    assert [watch.hook() for _ in range(3)] == [None] * 3
    run.finish()
    [(kind, _, fields)] = record_of(tmp_path).events
    assert (kind, fields["hook"], fields["why"]) == ("callback_failed", "hook", "RuntimeError: no")


def test_batches_are_distinguished():
    """Proves that the digest is the same for the same batch alone, in whatever layout NumPy keeps it."""
    from trackway.callbacks._watch import digest

    batch = numpy.random.default_rng(1).random((32, 70))
    changed = batch.copy()
    changed[:, :2] += 1
    assert digest([batch]) == digest([batch.copy()]) != digest([changed])
    assert digest([batch.T]) == digest([batch.T.copy(order="C")])
    assert digest([]) is None and digest(["text", numpy.zeros(0)]) is None


def test_the_inputs_of_a_batch() -> None:
    """Proves that the inputs are the tensor that holds most, the first of equal ones, and none where nothing is beside it."""
    from trackway.callbacks._watch import largest

    labels, inputs, mask = numpy.zeros(4), numpy.ones((4, 3)), numpy.ones((4, 3))
    assert largest([labels, inputs, mask]) is inputs
    assert largest([inputs]) is None and largest([inputs, "text", 7]) is None


# PyTorch


def torch_parts(torch):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.125)


def torch_batches(torch, count=6):
    return [(torch.randn(5, 4), torch.randn(5, 1)) for _ in range(count)]


def test_a_loop_in_pytorch(attempt, tmp_path):
    """Proves what a loop in PyTorch leaves: the norm of the true gradients, the rate, waiting, throughput, digests."""
    torch = need("torch")
    run = attempt()
    model, optimizer = torch_parts(torch)
    watch = callbacks.TorchLoop(run, optimizer)
    norms, losses = {}, {}
    batches = torch_batches(torch)
    batches[3] = batches[2]
    step_seconds_max = {}
    ready = time.perf_counter()
    for step, (inputs, labels) in watch.batches(Slow(batches, 0.01)):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), labels)
        loss.backward()
        norms[step] = float(torch.nn.utils.get_total_norm([one.grad for one in model.parameters()]))
        losses[step] = loss.item()
        optimizer.step()
        watch.step(step, loss=loss)
        step_seconds_max[step] = time.perf_counter() - ready
        time.sleep(0.05)  # an evaluation: no part of a step, and no waiting for a batch
        ready = time.perf_counter()
    run.finish()
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert record.names == TIMES | GRADIENTS | {"loss", "learning_rate", "samples_per_update"} | DIGESTS
    assert record.metric("grad_norm") == pytest.approx(norms) and record.metric("loss") == losses
    assert set(record.metric("nonfinite_gradients").values()) == {0}
    assert set(record.metric("learning_rate").values()) == {0.125}
    digests = record.metric("batch_digest")
    assert digests[3] == digests[4] and len(set(digests.values())) == 5
    for step in range(1, 7):
        wait, seconds = record.metric("batch_wait_seconds")[step], record.metric("step_seconds")[step]
        assert 0.01 <= wait <= seconds <= step_seconds_max[step]
        assert record.metric("samples_per_second")[step] == pytest.approx(5 / seconds)


def test_gradients_that_are_not_finite(attempt, tmp_path):
    """Proves that NaN in one of two optimizers' gradients is counted, and that the norm given by hand is taken."""
    torch = need("torch")
    run = attempt()
    first, second = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    optimizers = [torch.optim.SGD(one.parameters(), lr=rate) for one, rate in ((first, 0.5), (second, 0.25))]
    watch = callbacks.TorchLoop(run, optimizers, every=2)
    for step in range(1, 6):
        for model, optimizer in zip((first, second), optimizers, strict=True):
            optimizer.zero_grad()
            (model(torch.ones(1, 2)).sum() * (math.nan if step == 3 and model is second else 1.0)).backward()
            optimizer.step()
        watch.step(step, loss=1.0, **({"grad_norm": 7.0} if step == 5 else {}))
    run.finish()
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert record.metric("nonfinite_gradients") == {1: 0, 3: 2, 5: 0}
    norms = record.metric("grad_norm")
    assert set(norms) == {1, 3, 5} and norms[1] == pytest.approx(math.sqrt(6))
    assert math.isnan(norms[3]) and norms[5] == 7
    assert record.metric("learning_rate") == dict.fromkeys(range(1, 6), 0.5)


def test_a_scaler_that_leaves_an_update_out(attempt, tmp_path):
    """Proves that an update which the scaler leaves out is reported as gradients that are not finite, with the scale."""
    torch = need("torch")
    run = attempt()
    model, optimizer = torch_parts(torch)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    watch = callbacks.TorchLoop(run, optimizer, scaler=scaler)
    for step in range(1, 4):
        optimizer.zero_grad()
        loss = model(torch.full((1, 4), math.inf if step == 2 else 1.0)).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        watch.step(step, loss=loss)
    run.finish()
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert record.metric("nonfinite_gradients") == {1: 0, 2: 1, 3: 0}
    assert record.metric("loss_scale") == {1: 8, 2: 4, 3: 4}


def test_samples_of_an_update_are_counted(attempt, tmp_path):
    """Proves that the samples between two updates are counted with the accumulation of gradients, and recorded when they change."""
    torch = need("torch")
    run = attempt()
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watch = callbacks.TorchLoop(run, optimizer)
    for step, inputs in watch.batches([torch.ones(8, 4)] * 8 + [torch.ones(5, 4)]):
        model(inputs).mean().backward()
        if step % 4 == 0 or step == 9:
            optimizer.step()
            optimizer.zero_grad()
        watch.step(step)
    run.finish()
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert record.metric("samples_per_update") == {4: 32, 9: 5}


def loop_in_pytorch(run, torch, model, optimizer, steps=12, update_every=1, **options):
    watch = callbacks.TorchLoop(run, optimizer, **options)
    for step in range(1, steps + 1):
        model(torch.ones(3, 4)).square().mean().backward()
        if step % update_every == 0:
            optimizer.step()
            optimizer.zero_grad()
        watch.step(step)
    run.finish()


def test_parameters_that_never_change(attempt, tmp_path):
    """Proves that an optimizer whose parameters do not change is reported with its updates: that of a copy of the model, with
    a norm of 0 for gradients that never come, and one whose updates are lost in bfloat16."""
    torch = need("torch")
    model, _ = torch_parts(torch)
    loop_in_pytorch(attempt(), torch, model, torch.optim.SGD(copy.deepcopy(model).parameters(), lr=0.1))
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert record.metric("unmoved_updates") == {step: step for step in range(1, 13)}
    assert record.metric("grad_norm") == dict.fromkeys(range(1, 13), 0)
    model = torch.nn.Linear(4, 1).bfloat16()
    torch.nn.init.ones_(model.bias)
    torch.nn.init.ones_(model.weight)
    run = attempt(epoch=2)
    watch = callbacks.TorchLoop(run, optimizer := torch.optim.SGD(model.parameters(), lr=1e-6))
    for step in range(1, 13):
        model(torch.ones(3, 4).bfloat16()).mean().backward()
        optimizer.step()
        watch.step(step)
    run.finish()
    record = flight_record.read(tmp_path / "record-2")
    assert record.metric("unmoved_updates")[12] == 12 and min(record.metric("grad_norm").values()) > 0


def test_parameters_that_change_are_not_reported(attempt, tmp_path):
    """Proves that nothing is reported of a model of which only a part is trained, of gradients that are accumulated, of rows that
    are updated one at a time, and without an update; and that a warm-up that begins at a rate of 0 is taken back."""
    torch = need("torch")

    def recorded(number, model, rate=0.1, **options):
        trained = [one for one in model.parameters() if one.requires_grad]
        loop_in_pytorch(attempt(epoch=number), torch, model, torch.optim.SGD(trained, lr=rate), **options)
        record = flight_record.read(tmp_path / f"record-{number}")
        check_nothing_failed(record)
        return record

    partly, _ = torch_parts(torch)
    partly[2].requires_grad_(False)
    assert "unmoved_updates" not in recorded(1, partly).names
    assert "unmoved_updates" not in recorded(2, torch_parts(torch)[0], update_every=4).names
    assert "unmoved_updates" not in recorded(3, torch_parts(torch)[0], update_every=4, every=3).names
    assert "unmoved_updates" not in recorded(4, torch_parts(torch)[0], update_every=100).names

    class Rows(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = torch.nn.Embedding(100_000, 2, sparse=True)

        def forward(self, _):
            return self.rows(torch.tensor([77_777]))

    assert "unmoved_updates" not in recorded(5, Rows()).names
    model, optimizer = torch_parts(torch)
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: max(0, update - 2) / 10)
    run = attempt(epoch=6)
    watch = callbacks.TorchLoop(run, optimizer)
    for step in range(1, 13):
        model(torch.ones(3, 4)).mean().backward()
        optimizer.step()
        warm_up.step()
        watch.step(step)
    run.finish()
    record = flight_record.read(tmp_path / "record-6")
    assert record.metric("unmoved_updates") == {1: 1, 2: 2, 3: 3, 4: 0} and min(record.metric("grad_norm").values()) > 0


def test_a_loop_in_pytorch_on_a_device_never_waits(attempt, tmp_path):
    """Proves on a CUDA device that the watch makes no call that waits for it, and that all values arrive."""
    torch = need("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    run = attempt()
    model = torch.nn.Linear(256, 256).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    watch = callbacks.TorchLoop(run, optimizer)
    batch = torch.randn(64, 256, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        for step, inputs in watch.batches([batch] * 200):
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            optimizer.step()
            watch.step(step, loss=loss)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    run.finish()
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert set(record.metric("loss")) == set(record.metric("grad_norm")) == set(range(1, 201))
    assert record.metric("memory_allocated_bytes") and record.metric("memory_reserved_bytes")


def test_the_memory_of_the_first_steps_is_looked_at_each_time(monkeypatch):
    """Proves that a short run has as many values of its memory as steps, so that a leak shows, and a long one a value a second."""
    from trackway.callbacks import _watch

    clock = iter(range(10_000))
    monkeypatch.setattr(_watch.time, "perf_counter", lambda: next(clock) / 100)
    watch = _watch.Watch()
    due = [watch.memory_is_due() for _ in range(1_000)]
    assert all(due[: _watch.MEMORY_STEPS]) and 7 <= sum(due[_watch.MEMORY_STEPS :]) <= 9


def test_outside_an_attempt_a_loop_is_left_alone(tmp_path, monkeypatch):
    """Proves that nothing is hooked and nothing is computed outside an attempt."""
    torch = need("torch")
    monkeypatch.chdir(tmp_path)
    model, optimizer = torch_parts(torch)
    watch = callbacks.TorchLoop(trackway.attach(), optimizer)
    assert not optimizer._optimizer_step_pre_hooks
    assert [step for step, _ in watch.batches("abc")] == [1, 2, 3]
    watch.step(1, loss=torch.ones(()))
    assert list(tmp_path.iterdir()) == []


# JAX


def test_a_loop_in_jax(attempt, tmp_path):
    """Proves what a loop in JAX with Flax and optax leaves, and that all values arrive though none is waited for."""
    jax, optax, nnx = need("jax"), need("optax"), need("flax.nnx")
    import jax.numpy as jnp

    run = attempt()
    model = nnx.Linear(4, 1, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.125), wrt=nnx.Param)

    @nnx.jit
    def update(model, optimizer, inputs, labels):
        def loss_of(model):
            return jnp.mean((model(inputs) - labels) ** 2)

        loss, gradients = nnx.value_and_grad(loss_of)(model)
        optimizer.update(model, gradients)
        return loss, optax.global_norm(gradients), callbacks.gradient_metrics(gradients)

    watch = callbacks.JaxLoop(run)
    norms, losses = {}, {}
    batches = [(numpy.full((5, 4), number), numpy.ones((5, 1))) for number in range(7)]
    for step, (inputs, labels) in watch.batches(Slow(batches, 0.01)):
        loss, norm, metrics = update(model, optimizer, inputs * (math.inf if step == 7 else 1), labels)
        watch.step(step, loss=loss, learning_rate=0.125, **metrics)
        norms[step], losses[step] = norm, loss
    run.finish()
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert record.names == TIMES | GRADIENTS | {"loss", "learning_rate"} | DIGESTS
    assert list(record.metric("loss").items())[:6] == [(step, float(losses[step])) for step in range(1, 7)]
    for step in range(1, 7):
        assert record.metric("grad_norm")[step] == pytest.approx(float(norms[step]))
    assert record.metric("nonfinite_gradients") == {**dict.fromkeys(range(1, 7), 0), 7: 2}
    assert min(record.metric("batch_wait_seconds").values()) >= 0.01
    assert jax.device_get(losses[1]) == record.metric("loss")[1]


def test_a_loop_in_jax_never_waits(attempt, tmp_path):
    """Proves that a step whose loss is still being computed is handed over at once, and recorded in the end."""
    jax = need("jax")
    import jax.numpy as jnp

    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 100, lambda _, y: jnp.tanh(y @ x), x).mean())
    inputs = jnp.ones((1000, 1000))
    slow(inputs).block_until_ready()
    run = attempt()
    watch = callbacks.JaxLoop(run)
    loss = slow(inputs)
    watch.step(1, loss=loss)
    assert not loss.is_ready() and "loss" not in record_of(tmp_path).names
    run.finish()
    assert record_of(tmp_path).metric("loss") == {1: float(loss)}


# Lightning


def lightning_training(lightning, tmp_path, rate=0.125, **options):
    torch = need("torch")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.layer = torch.nn.Linear(4, 1)
            self.norms = {}

        def training_step(self, batch, index):
            return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

        def validation_step(self, batch, index):
            self.log("val_loss", torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1]))

        def on_before_optimizer_step(self, optimizer):
            norm = torch.nn.utils.get_total_norm([one.grad for one in self.parameters()])
            self.norms[self.trainer.global_step + 1] = float(norm)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=rate)

    data = torch.utils.data.TensorDataset(torch.randn(40, 4), torch.randn(40, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=5)
    trainer = lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path / "lightning",
        **options,
    )
    module = Module()
    trainer.fit(module, loader, loader)
    return module, trainer


def test_lightning(attempt, tmp_path):
    """Proves what a training with Lightning leaves, with gradients added up over two batches and clipped."""
    lightning = need("pytorch_lightning")
    run = attempt()
    callback = callbacks.LightningCallback(run)
    options = {"max_epochs": 2, "accumulate_grad_batches": 2, "gradient_clip_val": 0.01}
    saver = lightning.callbacks.ModelCheckpoint(tmp_path / "files", save_top_k=-1)
    module, _ = lightning_training(lightning, tmp_path, callbacks=[callback, saver], **options)
    run.finish()
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert written(record) == [("epoch=0-step=4.ckpt", 4), ("epoch=1-step=8.ckpt", 8)]
    assert record.names == TIMES | GRADIENTS | {"loss", "val_loss", "learning_rate", "samples_per_update"} | DIGESTS
    assert set(record.metric("loss")) == set(range(1, 9))
    assert record.metric("grad_norm") == pytest.approx(module.norms), "the norm from before the clipping"
    assert set(record.metric("val_loss")) == {4, 8}
    assert set(record.metric("learning_rate").values()) == {0.125}


def test_lightning_that_changes_nothing(attempt, tmp_path):
    """Proves that the updates of a module whose parameters never change are counted."""
    lightning = need("pytorch_lightning")
    run = attempt()
    lightning_training(lightning, tmp_path, rate=0.0, max_epochs=2, callbacks=[callbacks.LightningCallback(run)])
    run.finish()
    check_nothing_failed(record_of(tmp_path))
    assert record_of(tmp_path).metric("unmoved_updates") == {step: step for step in range(1, 17)}


def test_lightning_is_stopped(attempt, tmp_path):
    """Proves that a stop ends Lightning's training at the next batch."""
    lightning = need("pytorch_lightning")
    run = attempt()
    ask_to_stop(tmp_path)
    _, trainer = lightning_training(lightning, tmp_path, max_epochs=50, callbacks=[callbacks.LightningCallback(run)])
    assert trainer.global_step < 100


# Hugging Face


def transformers_training(tmp_path, callback, rate=0.125, **options):
    torch, transformers = need("torch"), need("transformers")
    need("accelerate")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, inputs, labels):
            output = self.layer(inputs)
            return {"loss": torch.nn.functional.mse_loss(output, labels), "logits": output}

    data = [{"inputs": torch.randn(4), "labels": torch.randn(1)} for _ in range(40)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "transformers"),
        per_device_train_batch_size=5,
        learning_rate=rate,
        lr_scheduler_type="constant",
        logging_steps=2,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        **options,
    )
    trainer = transformers.Trainer(
        model=Model(), args=arguments, train_dataset=data, eval_dataset=data, callbacks=[callback]
    )
    trainer.train()
    return trainer


def test_transformers(attempt, tmp_path):
    """Proves what a training with the Trainer leaves: per update what needs no waiting, and what it logs itself."""
    need("transformers")
    run = attempt()
    callback = callbacks.TransformersCallback(run)
    options = {"num_train_epochs": 2, "eval_strategy": "epoch", "save_strategy": "epoch"}
    trainer = transformers_training(tmp_path, callback, **options)
    run.finish()
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert written(record) == [("checkpoint-8", 8), ("checkpoint-16", 16)]
    assert record.names >= TIMES | GRADIENTS | {"loss", "val_loss", "learning_rate"}
    logged = {one["step"]: one for one in trainer.state.log_history if "loss" in one}
    assert set(logged) == set(range(2, 17, 2))
    for name in ("loss", "grad_norm"):
        assert record.metric(name) == {step: one[name] for step, one in logged.items()}
    assert record.metric("learning_rate") == dict.fromkeys(range(1, 17), 0.125)
    assert record.metric("nonfinite_gradients") == dict.fromkeys(range(1, 17), 0)
    assert set(record.metric("val_loss")) == {8, 16}


def test_transformers_that_changes_nothing(attempt, tmp_path):
    """Proves that the updates of a model whose parameters never change are counted."""
    need("transformers")
    run = attempt()
    transformers_training(tmp_path, callbacks.TransformersCallback(run), rate=0.0, num_train_epochs=2)
    run.finish()
    check_nothing_failed(record_of(tmp_path))
    assert record_of(tmp_path).metric("unmoved_updates") == {step: step for step in range(1, 17)}


def test_transformers_is_stopped(attempt, tmp_path):
    """Proves that a stop makes the Trainer save a checkpoint and end."""
    need("transformers")
    run = attempt()
    ask_to_stop(tmp_path)
    trainer = transformers_training(tmp_path, callbacks.TransformersCallback(run), num_train_epochs=50)
    assert trainer.state.global_step < 100
    assert list((tmp_path / "transformers").glob("checkpoint-*"))


# Keras


def keras_training(tmp_path, epochs, rate=0.125):
    """Runs it in a separate process, since Keras is bound to its backend when it is imported."""
    need("jax")
    need("keras")
    command = [sys.executable, str(Path(__file__).parents[1] / "scripts/train_keras.py"), str(epochs), str(rate)]
    environment = {**os.environ, **attempt_environment(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_keras(tmp_path):
    """Proves what trainings with Keras on JAX leave: the loss of each batch, not Keras's running mean, and the
    gradients from within the compiled step; that Keras's own logs stay as they are; and that nothing is left
    behind."""
    lines = keras_training(tmp_path, epochs=2)
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert written(record) == [("model.keras", step) for step in (8, 16, 24, 32)]
    assert record.names == TIMES | GRADIENTS | {"loss", "epoch_loss", "val_loss", "learning_rate"} | DIGESTS
    steps = set(range(1, 33))
    assert set(record.metric("loss")) == set(record.metric("grad_norm")) == steps
    assert set(record.metric("val_loss")) == {8, 16, 24, 32}
    assert set(record.metric("learning_rate").values()) == {0.125}
    assert lines.count("['loss']") == 40, "what other callbacks are given"
    firsts = [float(line.split()[1]) for line in lines if line.startswith("first ")]
    assert [record.metric("loss")[1], record.metric("loss")[17]] == pytest.approx(firsts)
    means = [line for line in lines if line.startswith("history")]
    assert means[0].startswith("history ['loss', 'val_loss'] ")
    epoch = [numpy.mean([record.metric("loss")[step] for step in range(first, first + 8)]) for first in (1, 9)]
    assert json.loads(means[0].split("] ", 1)[1]) == pytest.approx(epoch)


def test_keras_that_changes_nothing(tmp_path):
    """Proves that the updates of a model whose variables never change are counted at the end of each epoch."""
    keras_training(tmp_path, epochs=2, rate=0.0)
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert record.metric("unmoved_updates") == {8: 8, 16: 16, 24: 8, 32: 16}


def test_keras_is_stopped(tmp_path):
    """Proves that a stop ends Keras's training."""
    ask_to_stop(tmp_path)
    lines = keras_training(tmp_path, epochs=500)
    assert lines.count("epochs 1") == 2


# scikit-learn, XGBoost, LightGBM


def table(rows=120):
    random = numpy.random.default_rng(7)
    x = random.random((rows, 5))
    return x, (x[:, 0] + x[:, 1] > 1).astype(int)


def test_sklearn_callbacks(attempt, tmp_path):
    """Proves that iterations of a solver in a pipeline in a search are steps, and the tasks around them events."""
    need("sklearn.callback")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    run = attempt()
    x, y = table()
    model = LogisticRegression().set_callbacks(callbacks.SklearnCallback(run)).fit(x, y)
    iterations = int(model.n_iter_[0])
    make_pipeline(StandardScaler(), LogisticRegression().set_callbacks(callbacks.SklearnCallback(run))).fit(x, y)
    run.finish()
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert set(record.metric("step_seconds")) >= set(range(1, iterations + 1))
    assert {fields["estimator"] for _, _, fields in record.events} == {"LogisticRegression"}


def test_sklearn_monitor(attempt, tmp_path):
    """Proves that gradient boosting is recorded tree by tree, and ended by a stop."""
    need("sklearn")
    from sklearn.ensemble import GradientBoostingClassifier

    run = attempt()
    x, y = table()
    model = GradientBoostingClassifier(n_estimators=9, subsample=0.5, random_state=1)
    model.fit(x, y, monitor=callbacks.SklearnCallback(run))
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert record.metric("loss") == dict(enumerate(model.train_score_, 1))
    assert set(record.metric("oob_improvement")) == set(range(1, 10))
    ask_to_stop(tmp_path)
    model.set_params(n_estimators=500).fit(x, y, monitor=callbacks.SklearnCallback(run))
    assert len(model.estimators_) == 1
    run.finish()


def test_xgboost(attempt, tmp_path):
    """Proves that a training with XGBoost is recorded round by round, a cross-validation too, and ended by a stop."""
    xgboost = need("xgboost")
    run = attempt()
    x, y = table()
    train, test = xgboost.DMatrix(x[:80], y[:80]), xgboost.DMatrix(x[80:], y[80:])
    reported = {}
    parameters = {"objective": "binary:logistic", "eval_metric": ["auc", "logloss"]}
    common = {"num_boost_round": 6, "verbose_eval": False}
    evals = [(train, "train"), (test, "test")]
    watch = callbacks.XGBoostCallback(run)
    xgboost.train(parameters, train, evals=evals, evals_result=reported, callbacks=[watch], **common)
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert record.metric("loss") == dict(enumerate(reported["train"]["logloss"], 1))
    assert record.metric("val_loss") == dict(enumerate(reported["test"]["logloss"], 1))
    assert record.metric("test_auc") == dict(enumerate(reported["test"]["auc"], 1))
    assert set(record.metric("step_seconds")) == set(range(1, 7))
    model = xgboost.XGBClassifier(n_estimators=3, callbacks=[callbacks.XGBoostCallback(run)])
    model.fit(x[:80], y[:80], eval_set=[(x[80:], y[80:])], verbose=False)
    record = record_of(tmp_path)
    last = model.evals_result()["validation_0"]["logloss"][-1]
    assert record.metric("val_loss")[3] == record.metric("validation_0_logloss")[3] == last
    xgboost.cv(parameters, train, callbacks=[callbacks.XGBoostCallback(run)], **common)
    check_nothing_failed(record_of(tmp_path))
    ask_to_stop(tmp_path)
    booster = xgboost.train(parameters, train, callbacks=[callbacks.XGBoostCallback(run)], **common)
    assert booster.num_boosted_rounds() == 1
    run.finish()


def test_lightgbm(attempt, tmp_path):
    """Proves that a training with LightGBM is recorded round by round, and ended by a stop."""
    lightgbm = need("lightgbm")
    run = attempt()
    x, y = table()
    train = lightgbm.Dataset(x[:80], y[:80])
    test = lightgbm.Dataset(x[80:], y[80:], reference=train)
    reported = {}
    parameters = {"objective": "binary", "metric": ["auc", "binary_logloss"], "verbose": -1, "learning_rate": 0.25}
    watch = [callbacks.LightGBMCallback(run), lightgbm.record_evaluation(reported)]
    given = {"valid_sets": [train, test], "valid_names": ["train", "test"]}
    lightgbm.train(parameters, train, num_boost_round=6, callbacks=watch, **given)
    record = record_of(tmp_path)
    check_nothing_failed(record)
    assert record.metric("loss") == dict(enumerate(reported["train"]["binary_logloss"], 1))
    assert record.metric("val_loss") == dict(enumerate(reported["test"]["binary_logloss"], 1))
    assert record.metric("learning_rate") == dict.fromkeys(range(1, 7), 0.25)
    ask_to_stop(tmp_path)
    booster = lightgbm.train(
        parameters, train, num_boost_round=50, callbacks=[callbacks.LightGBMCallback(run)], **given
    )
    assert booster.current_iteration() == 1
    run.finish()
