"""Kills real frameworks while they save, and compares what the library says with what the framework then loads.

    cargo build -p trackway-layouts --example look
    python crates/storage/layouts/samples/kill.py target/debug/examples/look 25 [NAME ...]

What is said to be whole must load. What loads and is said to be unfinished or torn is counted too, as is what is not known.
"""

import collections
import json
import multiprocessing
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings

os.environ.update(KERAS_BACKEND="torch", JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")


def torch_state(step):
    import torch

    return {"model": {"w": torch.full((1 << 22,), float(step))}, "optimizer": {"state": torch.zeros(1 << 22)}, "step": step}


def save_torch_file(out, step):
    """In place, over the older one."""
    import torch

    torch.save(torch_state(step), out / "ckpt.pt")


def load_torch_file(path):
    import torch

    assert torch.load(path, weights_only=False)["step"] > 0


def save_torch_dcp(out, step):
    """Two folders in turn, each over its older save."""
    import torch.distributed.checkpoint as dcp

    dcp.save(torch_state(step), checkpoint_id=str(out / f"step-{step % 2}"))


def load_torch_dcp(path):
    import torch
    import torch.distributed.checkpoint as dcp

    state = torch_state(0)
    dcp.load(state, checkpoint_id=str(path))
    assert state["model"]["w"].unique().tolist() == [float(state["step"])], "it is of two saves"


def save_transformers(out, step):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    rows = [{"input_ids": torch.randint(0, 64, (8,)), "labels": torch.randint(0, 64, (8,))} for _ in range(64)]
    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=256, n_layer=6, n_head=2, bos_token_id=0, eos_token_id=0)
    arguments = TrainingArguments(
        output_dir=str(out), max_steps=30, save_steps=1, save_total_limit=3, per_device_train_batch_size=2, report_to=[],
        use_cpu=True, disable_tqdm=True,
    )
    Trainer(GPT2LMHeadModel(config), arguments, train_dataset=rows).train()


def load_transformers(path):
    import torch
    from transformers import GPT2LMHeadModel

    GPT2LMHeadModel.from_pretrained(path)
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        torch.load(path / name, weights_only=False)
    assert json.loads((path / "trainer_state.json").read_text())["global_step"] == int(path.name.split("-")[1])


def save_lightning(out, step):
    """The function with which Lightning writes every checkpoint."""
    from lightning_fabric.utilities.cloud_io import _atomic_save

    state = torch_state(step) | {"global_step": step, "epoch": 0, "pytorch-lightning_version": "2.6.6"}
    _atomic_save(state, str(out / f"epoch=0-step={step}.ckpt"))
    (out / f"epoch=0-step={step - 2}.ckpt").unlink(missing_ok=True)


load_lightning = load_torch_file


def save_accelerate(out, step):
    """A folder for each save, and the one before the last deleted."""
    import shutil

    import torch
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = torch.nn.Linear(2048, 1024)
    optimizer = torch.optim.AdamW(model.parameters())
    accelerator.prepare(model, optimizer)
    while True:
        accelerator.save_state(str(out / f"step_{step}"))
        shutil.rmtree(out / f"step_{step - 2}", ignore_errors=True)
        step += 1


def load_accelerate(path):
    import torch
    from safetensors.torch import load_file

    load_file(path / "model.safetensors")
    for name in ("optimizer.bin", "random_states_0.pkl"):
        torch.load(path / name, weights_only=False)


def save_lightgbm(out, step):
    import lightgbm
    import numpy

    rows = numpy.random.default_rng(0).random((4000, 8))
    parameters = {"verbose": -1, "num_leaves": 255, "min_data_in_leaf": 2, "num_threads": 1}
    booster = lightgbm.train(parameters, lightgbm.Dataset(rows, rows[:, 0]), 100)
    while True:
        booster.save_model(out / f"model_{step % 2}.txt")
        step += 1


def load_lightgbm(path):
    import lightgbm

    assert lightgbm.Booster(model_file=path).current_iteration() == 100


def save_joblib(out, step):
    import joblib
    import numpy
    from sklearn.ensemble import RandomForestRegressor

    rows = numpy.random.default_rng(0).random((4000, 8))
    model = RandomForestRegressor(40).fit(rows, rows[:, 0])
    while True:
        joblib.dump(model, out / f"model_{step % 2}.joblib")
        with open(out / f"model_{step % 2}.pkl", "wb") as file:
            pickle.dump(model, file)
        step += 1


def load_joblib(path):
    import joblib

    joblib.load(path)


def save_keras(out, step):
    import keras

    model = keras.Sequential([keras.Input((512,)), keras.layers.Dense(2048), keras.layers.Dense(1024)])
    while True:
        model.save(out / f"epoch-{step % 3}.keras")
        step += 1


def load_keras(path):
    import keras

    keras.models.load_model(path)


def save_xgboost(out, step):
    import numpy
    import xgboost

    rows = numpy.random.default_rng(0).random((4000, 8))
    booster = xgboost.train({"max_depth": 8, "nthread": 1}, xgboost.DMatrix(rows, rows[:, 0]), 150)
    while True:
        booster.save_model(out / f"model_{step % 2}.json")
        booster.save_model(out / f"model_{step % 2}.ubj")
        step += 1


def load_xgboost(path):
    import xgboost

    assert xgboost.Booster(model_file=path).num_boosted_rounds() == 150


def save_safetensors(out, step):
    import torch
    from safetensors.torch import save_file

    save_file({"w": torch.full((1 << 24,), float(step))}, out / "model.safetensors")


def load_safetensors(path):
    from safetensors.torch import load_file

    assert load_file(path)["w"].unique().numel() == 1, "it is of two saves"


def save_orbax(out, step):
    import jax
    import orbax.checkpoint as framework

    state = {"w": jax.numpy.ones((1 << 20,)), "m": jax.numpy.zeros((1 << 20,))}
    with framework.CheckpointManager(out, options=framework.CheckpointManagerOptions(max_to_keep=3)) as manager:
        while True:
            manager.save(step, args=framework.args.StandardSave(state))
            step += 1


def load_orbax(path):
    import orbax.checkpoint as framework

    with framework.CheckpointManager(path.parent) as manager:
        manager.restore(int(path.name), args=framework.args.StandardRestore())


NAMES = (
    "torch_file", "torch_dcp", "transformers", "accelerate", "lightning", "keras", "xgboost", "lightgbm", "joblib", "safetensors",
    "orbax",
)


def child(name, out, ready):
    """Saves without end. The kill comes some time after the first file is there."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    os.setpgid(0, 0)
    ready.set()
    step = 1
    while True:
        globals()[f"save_{name}"](pathlib.Path(out), step)
        step += 1


def killed_run(name, out):
    context = multiprocessing.get_context("spawn" if name == "orbax" else "fork")
    ready = context.Event()
    process = context.Process(target=child, args=(name, str(out), ready))
    process.start()
    ready.wait()
    while process.is_alive() and not any(path.is_file() for path in out.rglob("*")):
        time.sleep(0.005)
    time.sleep(random.uniform(0, 1.5))
    os.killpg(process.pid, signal.SIGKILL)
    process.join()


def said(look, out):
    lines = subprocess.run([look, str(out)], capture_output=True, text=True, check=True).stdout.splitlines()
    for line in map(json.loads, lines):
        if "checkpoint" in line:
            yield out / line["checkpoint"]["path"], line["wholeness"]


def loads(name, path):
    try:
        globals()[f"load_{name}"](path)
        return None
    except BaseException as reason:
        return f"{type(reason).__name__}: {reason}"[:120]


def main():
    look, runs, chosen = sys.argv[1], int(sys.argv[2]), sys.argv[3:] or NAMES
    random.seed(1)
    wrong = 0
    for name in chosen:
        counts = collections.Counter()
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder)
                killed_run(name, out)
                for path, wholeness in said(look, out):
                    failure = loads(name, path)
                    counts[f"{wholeness['whole']}, {'fails' if failure else 'loads'}"] += 1
                    if wholeness["whole"] == "whole" and failure:
                        wrong += 1
                        print(f"WRONG: {name} {path.name} {wholeness}: {failure}", flush=True)
        print(f"{name}: {runs} kills: {dict(sorted(counts.items()))}", flush=True)
    print(f"said to be whole and not loaded: {wrong}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
