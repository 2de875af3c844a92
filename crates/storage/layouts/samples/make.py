"""Writes small checkpoints of real frameworks, each below a folder of the same name, to check the recogniser against.

    python crates/storage/layouts/samples/make.py /tmp/layout-samples [NAME ...]
    TRACKWAY_LAYOUT_SAMPLES=/tmp/layout-samples cargo test -p trackway-layouts --test samples -- --nocapture

A framework that is not installed is skipped with its name. After each one, the files are printed in the order in which
they were last written. DeepSpeed and Megatron are imitated: their folders, names and trackers, with files of torch.save.
"""

import importlib
import os
import pathlib
import pickle
import sys
import warnings

os.environ.update(KERAS_BACKEND="torch", JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")


def network():
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))


def trained():
    """A network with an optimizer that has a state."""
    import torch

    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    return model, optimizer


def transformers_trainer(out):
    train_transformers(out, max_steps=4)


def transformers_ranks(out):
    """Two processes with DistributedDataParallel."""
    import torch.multiprocessing as mp

    mp.start_processes(transformers_rank, (out,), nprocs=2, start_method="spawn")


def transformers_rank(rank, out):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29641")
    train_transformers(out, max_steps=2)


def train_transformers(out, max_steps):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    rows = [{"input_ids": torch.randint(0, 64, (8,)), "labels": torch.randint(0, 64, (8,))} for _ in range(16)]
    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2)
    arguments = TrainingArguments(
        output_dir=str(out / "out"), max_steps=max_steps, save_steps=2, per_device_train_batch_size=4, report_to=[], use_cpu=True
    )
    Trainer(GPT2LMHeadModel(config), arguments, train_dataset=rows).train()


def lightning(out):
    import pytorch_lightning as pl
    import torch

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = network()

        def training_step(self, batch, _):
            return self.net(batch[0]).sum()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(16, 8)), batch_size=4)
    callback = pl.callbacks.ModelCheckpoint(dirpath=str(out / "out"), save_top_k=-1, every_n_train_steps=2, save_last=True)
    trainer = pl.Trainer(
        max_epochs=2, logger=False, callbacks=[callback], enable_progress_bar=False, accelerator="cpu", enable_model_summary=False
    )
    trainer.fit(Module(), loader)


def accelerate(out):
    import torch
    from accelerate import Accelerator
    from accelerate.utils import ProjectConfiguration

    accelerator = Accelerator(
        cpu=True, project_config=ProjectConfiguration(project_dir=str(out), automatic_checkpoint_naming=True)
    )
    model, optimizer = trained()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    accelerator.prepare(model, optimizer, scheduler)
    accelerator.save_state()
    accelerator.save_state()


def torch_file(out):
    import torch

    model, optimizer = trained()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": 20, "best_val_loss": 1.5}
    torch.save(state, out / "ckpt.pt")
    torch.save(state, out / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(model.state_dict(), out / "model_step_40.pth")


def torch_dcp(out):
    import torch.distributed.checkpoint as dcp

    model, optimizer = trained()
    dcp.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 30}, checkpoint_id=str(out / "step-30"))


def torch_dcp_ranks(out):
    """Two processes with a sharded tensor each."""
    import torch.multiprocessing as mp

    mp.start_processes(dcp_rank, (str(out / "step-50"),), nprocs=2, start_method="spawn")


def dcp_rank(rank, path):
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    store = dist.FileStore(path + ".store", 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    weights = distribute_tensor(torch.arange(64.0).reshape(8, 8), mesh, [Shard(0)])
    dcp.save({"weights": weights}, checkpoint_id=path)
    dist.destroy_process_group()


def deepspeed(out):
    import torch

    model, optimizer = trained()
    for step in (10, 20):
        folder = out / f"global_step{step}"
        folder.mkdir()
        torch.save({"module": model.state_dict(), "global_steps": step}, folder / "mp_rank_00_model_states.pt")
        for rank in range(2):
            name = f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
            torch.save({"optimizer_state_dict": optimizer.state_dict()}, folder / name)
        (out / "latest").write_text(f"global_step{step}")


def megatron(out):
    import torch

    model, optimizer = trained()
    for step in (100, 200):
        folder = out / f"iter_{step:07d}" / "mp_rank_00"
        folder.mkdir(parents=True)
        torch.save(
            {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iteration": step}, folder / "model_optim_rng.pt"
        )
        (out / "latest_checkpointed_iteration.txt").write_text(str(step))


def keras(out):
    import keras as framework
    import numpy

    model = framework.Sequential([framework.Input((8,)), framework.layers.Dense(4), framework.layers.Dense(1)])
    model.compile("adam", "mse")
    callbacks = [
        framework.callbacks.ModelCheckpoint(str(out / "epoch-{epoch:02d}.keras")),
        framework.callbacks.BackupAndRestore(str(out / "backup"), delete_checkpoint=False),
    ]
    model.fit(numpy.ones((16, 8)), numpy.ones((16, 1)), epochs=2, verbose=0, callbacks=callbacks)
    model.save_weights(out / "final.weights.h5")


def orbax(out):
    import jax
    import orbax.checkpoint as framework

    state = {"params": {"w": jax.numpy.ones((4, 4))}, "opt": {"m": jax.numpy.zeros((4, 4))}}
    with framework.CheckpointManager(out / "manager", options=framework.CheckpointManagerOptions(max_to_keep=2)) as manager:
        for step in (5, 10):
            manager.save(step, args=framework.args.StandardSave(state))
            manager.wait_until_finished()
    with framework.StandardCheckpointer() as checkpointer:
        checkpointer.save(out / "single", state)


def flax_msgpack(out):
    import jax
    from flax import serialization
    from flax.training import checkpoints

    state = {"step": 7, "params": {"w": jax.numpy.ones((4, 4))}, "opt_state": {"m": jax.numpy.zeros((4,))}}
    (out / "params.msgpack").write_bytes(serialization.to_bytes(state))
    try:
        import flax

        flax.config.update("flax_use_orbax_checkpointing", False)
        checkpoints.save_checkpoint(str(out), state, step=7, keep=2)
    except Exception as reason:  # The old interface is leaving Flax.
        print(f"  flax.training.checkpoints: {reason}")


def xgboost(out):
    import numpy
    import xgboost as framework

    rows, labels = numpy.random.default_rng(0).random((64, 4)), numpy.arange(64) % 2
    booster = framework.train(
        {"objective": "binary:logistic"}, framework.DMatrix(rows, labels), 6,
        callbacks=[framework.callback.TrainingCheckPoint(str(out), interval=2)],
    )
    booster.save_model(out / "final.json")
    booster.save_model(out / "final.ubj")


def lightgbm(out):
    import lightgbm as framework
    import numpy

    rows, labels = numpy.random.default_rng(0).random((256, 4)), numpy.arange(256) % 2
    booster = framework.train({"objective": "binary", "verbose": -1}, framework.Dataset(rows, labels), 5)
    booster.save_model(out / "model.txt")


def catboost(out):
    import catboost as framework
    import numpy

    model = framework.CatBoostClassifier(iterations=10, verbose=False, train_dir=str(out / "catboost_info"), save_snapshot=True)
    model.fit(numpy.random.default_rng(0).random((64, 4)), numpy.arange(64) % 2)
    model.save_model(str(out / "model.cbm"))
    model.save_model(str(out / "model.json"), format="json")


def joblib(out):
    import joblib as framework
    import numpy
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(5).fit(numpy.random.default_rng(0).random((64, 4)), numpy.arange(64) % 2)
    framework.dump(model, out / "model.joblib")
    for suffix in ("gz", "z", "xz", "bz2", "lzma"):
        framework.dump(model, out / f"model.joblib.{suffix}")
    with open(out / "model.pkl", "wb") as file:
        pickle.dump(model, file)
    with open(out / "model-protocol2.pkl", "wb") as file:
        pickle.dump(model, file, protocol=2)


def safetensors(out):
    from safetensors.torch import save_file

    save_file(network().state_dict(), out / "model.safetensors", metadata={"step": "60"})


def numpy_files(out):
    import numpy

    numpy.savez(out / "checkpoint_step_9.npz", weights=numpy.ones((4, 4)), step=9)
    numpy.savez_compressed(out / "checkpoint_step_10.npz", weights=numpy.ones((4, 4)), step=10)


def other_files(out):
    """What must not be called a checkpoint."""
    import numpy

    numpy.savez(out / "train.npz", x=numpy.ones((64, 8)), y=numpy.zeros(64))
    numpy.save(out / "labels.npy", numpy.zeros(64))
    (out / "tokenizer.json").write_text('{"version": "1.0", "model": {"type": "BPE", "vocab": {}}}')
    (out / "wandb" / "run-1" / "files").mkdir(parents=True)
    (out / "wandb" / "run-1" / "files" / "config.yaml").write_text("lr: 1\n")
    (out / "notes.txt").write_text("tree\n")
    (out / "vocab.pkl").write_bytes(pickle.dumps({"a": 1}))
    (out / "latest").write_text("run 3 is the latest")


MODULES = {
    "transformers_trainer": "transformers", "lightning": "pytorch_lightning", "joblib": "sklearn", "numpy_files": "numpy",
    "other_files": "numpy", "transformers_ranks": "transformers", "orbax": "orbax.checkpoint", "flax_msgpack": "flax",
    **dict.fromkeys(("torch_file", "torch_dcp", "torch_dcp_ranks", "deepspeed", "megatron"), "torch"),
}
SAMPLES = (
    transformers_trainer, transformers_ranks, lightning, accelerate, torch_file, torch_dcp, torch_dcp_ranks, deepspeed, megatron, keras, orbax,
    flax_msgpack, xgboost, lightgbm, catboost, joblib, safetensors, numpy_files, other_files,
)


def main():
    root, chosen = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    for sample in SAMPLES:
        name = sample.__name__
        out = root / name
        if out.exists() or (chosen and name not in chosen):
            continue
        try:
            module = importlib.import_module(MODULES.get(name, name))
        except ImportError:
            print(f"{name}: not installed")
            continue
        print(f"{name}: {module.__name__} {getattr(module, '__version__', '')}", flush=True)
        out.mkdir(parents=True)
        sample(out)
        files = sorted((path for path in out.rglob("*") if path.is_file()), key=lambda path: path.stat().st_mtime_ns)
        for path in files:
            print(f"  {path.stat().st_size:>9} {path.relative_to(out)}")


if __name__ == "__main__":
    main()
