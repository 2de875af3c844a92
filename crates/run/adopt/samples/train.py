"""Trainings in the usual form of their framework, none of which knows Trackway: each saves with the framework's own means, and continues from what it finds.

    python train.py NAME

While the file `kills` has a number above zero, the process kills itself (and its process group) between its first save and a little after its second one, often in
the middle of a save. At its end it prints a digest of its weights.
"""

import hashlib
import os
import pathlib
import random
import signal
import sys
import threading
import time
import warnings

os.environ.update(KERAS_BACKEND="torch", JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

STEPS = int(os.environ.get("TRAIN_STEPS", 60))
EVERY = 5
# Of Keras, which saves over the same files after each epoch: long against a save, so that they can be committed between two.
EPOCH_SECONDS = 0.5
# Instead of random kills, one after so many steps.
KILL_AFTER = int(os.environ.get("TRAIN_KILL_AFTER", 0))
OUT = pathlib.Path("out")


def kill_later():
    """Called before a save: the kill comes within it, or soon after it."""
    left = int(pathlib.Path("kills").read_text() or 0)
    if left <= 0 or os.environ.get("RANK", "0") != "0":
        return
    seconds = random.SystemRandom().choice([0.0, 0.02, 0.1, 0.3]) * random.SystemRandom().random()

    def kill():
        time.sleep(seconds)
        pathlib.Path("kills").write_text(str(left - 1))
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()


def say(step, loss):
    time.sleep(0.02)  # what a step takes
    print(f"step {step} loss {float(loss):.6f}", flush=True)
    stamp(step)
    say.steps = getattr(say, "steps", 0) + 1
    if say.steps == KILL_AFTER:
        kill_now()
    elif say.steps == say.kill_at and not KILL_AFTER:
        kill_later()


def stamp(what):
    """For `bench/checkpoint/recovery.py`: when the script started, each step, and the kill."""
    if os.environ.get("TRAIN_STAMPS") and os.environ.get("RANK", "0") == "0":
        with open(os.environ["TRAIN_STAMPS"], "a") as stamps:
            stamps.write(f"{time.time()} {what}\n")


def kill_now():
    """Only this process: the others are ended by their launcher."""
    if pathlib.Path("kills").read_text() != "0":
        pathlib.Path("kills").write_text("0")
        stamp("killed")
        os.kill(os.getpid(), signal.SIGKILL)


say.kill_at = random.SystemRandom().randint(EVERY, 2 * EVERY + 2)


def end(*arrays):
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(bytes(array))
    print("weights", digest.hexdigest(), flush=True)


def tensors_of(model):
    return [tensor.detach().cpu().numpy().tobytes() for tensor in model.state_dict().values()]


def newest(pattern):
    """By the number in its name, as most scripts look for it."""
    found = [path for path in OUT.glob(pattern) if path.name.split("-")[-1].split("_")[-1].split(".")[0].isdigit()]
    return max(found, key=lambda path: int(path.name.split("-")[-1].split("_")[-1].split(".")[0]), default=None)


def torch_model():
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.Tanh(), torch.nn.Linear(512, 1))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def torch_step(model, optimizer, step):
    import torch

    torch.manual_seed(step)
    rows = torch.randn(16, 256)
    loss = ((model(rows).squeeze(-1) - rows[:, 0]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def torch_file():
    """One file, written over in place, as nanoGPT does."""
    import torch

    model, optimizer = torch_model()
    first = 1
    if (OUT / "ckpt.pt").exists():
        state = torch.load(OUT / "ckpt.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["iter_num"] + 1
    for step in range(first, STEPS + 1):
        say(step, torch_step(model, optimizer, step))
        if step % EVERY == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": step}
            torch.save(state, OUT / "ckpt.pt")
    end(*tensors_of(model))


def transformers():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed
    from transformers.trainer_utils import get_last_checkpoint

    class Say(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            if "loss" in (logs or {}):
                say(state.global_step, logs["loss"])

    set_seed(0)
    rows = [{"input_ids": torch.randint(0, 64, (8,)), "labels": torch.randint(0, 64, (8,))} for _ in range(256)]
    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    arguments = TrainingArguments(
        output_dir=str(OUT), max_steps=STEPS, save_steps=EVERY, save_total_limit=2, per_device_train_batch_size=4,
        report_to=[], use_cpu=True, disable_tqdm=True, logging_steps=1, seed=0,
    )
    trainer = Trainer(GPT2LMHeadModel(config), arguments, train_dataset=rows, callbacks=[Say()])
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(OUT)))
    if os.environ.get("RANK", "0") == "0":
        end(*tensors_of(trainer.model))


def transformers_ddp():
    """The same with two ranks over gloo: `torchrun --nproc-per-node 2 train.py transformers_ddp`."""
    transformers()


def lightning():
    import pytorch_lightning
    import torch
    from pytorch_lightning.callbacks import ModelCheckpoint

    class Module(pytorch_lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model, _ = torch_model()

        def training_step(self, batch, index):
            loss = ((self.model(batch).squeeze(-1) - batch[:, 0]) ** 2).mean()
            say(self.global_step + 1, loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    torch.manual_seed(1)
    rows = torch.utils.data.DataLoader(torch.randn(16 * STEPS, 256), 16)
    save = ModelCheckpoint(OUT, "model-{step}", every_n_train_steps=EVERY, save_top_k=2, monitor="step", mode="max")
    save.CHECKPOINT_EQUALS_CHAR = "-"
    trainer = pytorch_lightning.Trainer(
        max_steps=STEPS, callbacks=[save], logger=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu",
    )
    module = Module()
    trainer.fit(module, rows, ckpt_path=newest("model-*.ckpt"), weights_only=False)
    end(*tensors_of(module.model))


def accelerate():
    import shutil

    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(*torch_model())
    first, found = 1, newest("step_*")
    if found:
        accelerator.load_state(str(found))
        first = int(found.name.split("_")[1]) + 1
    for step in range(first, STEPS + 1):
        say(step, torch_step(model, optimizer, step))
        if step % EVERY == 0:
            accelerator.save_state(str(OUT / f"step_{step}"))
            shutil.rmtree(OUT / f"step_{step - 2 * EVERY}", ignore_errors=True)
    end(*tensors_of(model))


def torch_dcp():
    """FSDP2 over gloo: `torchrun --nproc-per-node 2 train.py torch_dcp`."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.fsdp import fully_shard

    torch.distributed.init_process_group("gloo")
    model, _ = torch_model()
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    first, found = 1, newest("step-*")
    if found:
        weights, moments = get_state_dict(model, optimizer)
        dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=str(found))
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
        first = int(found.name.split("-")[1]) + 1
    for step in range(first, STEPS + 1):
        loss = torch_step(model, optimizer, step)
        if torch.distributed.get_rank() == 0:
            say(step, loss)
        if step % EVERY == 0:
            weights, moments = get_state_dict(model, optimizer)
            dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=str(OUT / f"step-{step}"))
    whole = [tensor.full_tensor() for tensor in model.state_dict().values()]
    if torch.distributed.get_rank() == 0:
        end(*[tensor.numpy().tobytes() for tensor in whole])
    torch.distributed.destroy_process_group()


def torch_dcp_resharded():
    """The same with another number of ranks after each kill."""
    torch_dcp()


def deepspeed():
    """ZeRO over gloo: `torchrun --nproc-per-node 2 train.py deepspeed`."""
    os.environ.update(DS_ACCELERATOR="cpu")
    import deepspeed as framework
    import torch

    model, optimizer = torch_model()
    settings = {
        "train_micro_batch_size_per_gpu": 16, "zero_optimization": {"stage": 2}, "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
    }
    engine, *_ = framework.initialize(model=model, optimizer=optimizer, config=settings, dist_init_required=True)
    engine.load_checkpoint(str(OUT))
    for step in range(engine.global_steps + 1, STEPS + 1):
        torch.manual_seed(step)
        rows = torch.randn(16, 256)
        loss = ((engine(rows).squeeze(-1) - rows[:, 0]) ** 2).mean()
        engine.backward(loss)
        engine.step()
        if torch.distributed.get_rank() == 0:
            say(step, loss)
        if step % EVERY == 0:
            engine.save_checkpoint(str(OUT))
    if torch.distributed.get_rank() == 0:
        end(*tensors_of(engine.module))
    torch.distributed.destroy_process_group()


def keras():
    import keras as framework
    import numpy

    class Say(framework.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            time.sleep(EPOCH_SECONDS)
            say(epoch + 1, logs["loss"])

    framework.utils.set_random_seed(0)
    rows = numpy.random.default_rng(0).standard_normal((64, 32)).astype("float32")
    model = framework.Sequential([framework.Input((32,)), framework.layers.Dense(64, "tanh"), framework.layers.Dense(1)])
    model.compile(framework.optimizers.Adam(1e-3), "mse")
    save = framework.callbacks.BackupAndRestore(str(OUT / "backup"), delete_checkpoint=False)
    model.fit(rows, rows[:, 0], batch_size=16, epochs=STEPS, verbose=0, shuffle=False, callbacks=[Say(), save])
    end(*[weight.tobytes() for weight in model.get_weights()])


def orbax():
    import jax
    import orbax.checkpoint as framework

    weights, first = jax.numpy.zeros((256,)), 1
    with framework.CheckpointManager(OUT.absolute(), options=framework.CheckpointManagerOptions(max_to_keep=2)) as manager:
        if manager.latest_step() is not None:
            found = manager.restore(manager.latest_step(), args=framework.args.StandardRestore({"w": weights}))
            weights, first = found["w"], manager.latest_step() + 1
        for step in range(first, STEPS + 1):
            rows = jax.random.normal(jax.random.key(step), (16, 256))
            loss, gradient = jax.value_and_grad(lambda w, rows=rows: ((rows @ w - rows[:, 0]) ** 2).mean())(weights)
            weights = weights - 0.01 * gradient
            say(step, loss)
            if step % EVERY == 0:
                manager.save(step, args=framework.args.StandardSave({"w": weights}))
    end(jax.device_get(weights).tobytes())


def catboost():
    """A snapshot that CatBoost writes and finds by itself; it has no name per step."""
    import catboost as framework

    class Say:
        def after_iteration(self, info):
            say(info.iteration, info.metrics["learn"]["RMSE"][-1])
            return True

    rows, target = boosted_rows()
    model = framework.CatBoostRegressor(
        iterations=STEPS, depth=4, thread_count=1, random_seed=0, verbose=False, allow_writing_files=True, train_dir=str(OUT),
        save_snapshot=True, snapshot_file="model.cbsnapshot", snapshot_interval=0,
    )
    model.fit(rows, target, callbacks=[Say()])
    end(model.predict(rows).tobytes())


def boosted_rows():
    import numpy

    rows = numpy.random.default_rng(0).random((2000, 8))
    return rows, rows[:, 0] * rows[:, 1]


def xgboost():
    import xgboost as framework

    class Say(framework.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            say(model.num_boosted_rounds(), evals_log["train"]["rmse"][-1])
            return False

    rows, target = boosted_rows()
    data = framework.DMatrix(rows, target)
    found = newest("model_*.ubj")
    done = framework.Booster(model_file=found).num_boosted_rounds() if found else 0
    save = framework.callback.TrainingCheckPoint(directory=str(OUT), name="model", interval=EVERY)
    model = framework.train(
        {"max_depth": 6, "nthread": 1, "seed": 0}, data, STEPS - done, evals=[(data, "train")], verbose_eval=False,
        xgb_model=found, callbacks=[Say(), save],
    )
    end(bytes(model.save_raw("json")))


def lightgbm():
    import lightgbm as framework

    rows, target = boosted_rows()
    found = newest("model_*.txt")
    done = framework.Booster(model_file=found).current_iteration() if found else 0

    def save(env):
        step = env.iteration + 1
        say(step, env.evaluation_result_list[0][2])
        if step % EVERY == 0:
            env.model.save_model(OUT / f"model_{step}.txt")

    model = framework.train(
        {"verbose": -1, "num_threads": 1, "seed": 0, "deterministic": True}, framework.Dataset(rows, target), STEPS - done,
        valid_sets=[framework.Dataset(rows, target)], init_model=found, callbacks=[save],
    )
    end(model.model_to_string(num_iteration=-1).split("parameters:")[0].encode())


def sklearn():
    import joblib
    from sklearn.linear_model import SGDRegressor

    rows, target = boosted_rows()
    model, first = SGDRegressor(random_state=0), 1
    if (OUT / "model.joblib").exists():
        model, first = joblib.load(OUT / "model.joblib")
    for step in range(first, STEPS + 1):
        model.partial_fit(rows, target)
        say(step, ((model.predict(rows) - target) ** 2).mean())
        if step % EVERY == 0:
            joblib.dump((model, step + 1), OUT / "model.joblib")
    end(model.coef_.tobytes())


if __name__ == "__main__":
    stamp("started")
    OUT.mkdir(exist_ok=True)
    globals()[sys.argv[1]]()
