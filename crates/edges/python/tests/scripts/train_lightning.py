"""Trains with Lightning, whose checkpoints are saved through Trackway.

`python train_lightning.py FOLDER`, in which `environments.json` holds the variables of each attempt. Prints a JSON
object: what each launch found, by its name."""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

import pytorch_lightning as lightning
import torch
import torch._dynamo  # what an optimizer imports at its first step: once, before the processes are forked
from forked import launch
from pytorch_lightning.callbacks import ModelCheckpoint

import trackway

EPOCHS, BATCHES = 4, 5


class Module(lightning.LightningModule):
    """A model with dropout, whose process ends within a batch."""

    def __init__(self, kill_at=None):
        super().__init__()
        self.save_hyperparameters({"rate": 0.1, "kind": Path("as-an-object")})
        torch.manual_seed(1)
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Dropout(0.3), torch.nn.Linear(6, 1))
        self.kill_at = kill_at
        self.seen = []

    def training_step(self, batch, index):
        if (self.current_epoch, index) == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.seen.append(self.current_epoch)
        loss = torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.log("loss", loss, on_epoch=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.05)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]


def train(folder, *, kill_at=None, last=False, epochs=EPOCHS, saver=True, wait=True, **options):
    io = trackway.lightning.TrackwayCheckpointIO(wait=wait)
    files = ModelCheckpoint(folder / "files", save_top_k=2, monitor="loss", save_last=True)
    module = Module(kill_at)
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=epochs, logger=False, enable_progress_bar=False, enable_model_summary=False,
        default_root_dir=folder, plugins=[io], enable_checkpointing=saver,
        callbacks=[trackway.callbacks.LightningCallback(), *([files] if saver else [])], **options,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(3)
    data = torch.utils.data.TensorDataset(torch.randn(20, 4, generator=generator), torch.randn(20, 1, generator=generator))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle="strategy" not in options)
    trainer.fit(module, loader, ckpt_path="last" if last else io.newest)
    io.run.finish()
    found = hashlib.sha256(b"".join(value.numpy().tobytes() for value in module.state_dict().values()))
    for moments in trainer.optimizers[0].state_dict()["state"].values():
        found.update(b"".join(moments[name].numpy().tobytes() for name in sorted(moments)))
    noise = hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()
    rate = trainer.optimizers[0].param_groups[0]["lr"]
    listed = sorted(path.name for path in (folder / "files").glob("*")) if saver else []
    return {
        "digest": found.hexdigest(), "noise": noise, "rate": rate, "seen": module.seen, "step": trainer.global_step,
        "best": float(files.best_model_score) if saver else 0, "files": listed,
    }  # fmt: skip


def main(folder):
    torch.set_num_threads(1)
    given = json.loads((folder / "environments.json").read_text())

    def at(name, world_size, **options):
        place = folder / name.rstrip("0123456789")
        place.mkdir(exist_ok=True)
        environment = given[name]
        if world_size > 1:
            environment = {**environment, "TORCHELASTIC_RUN_ID": "one", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": given["port"]}
            options |= {"strategy": "ddp", "devices": world_size}
        else:
            options |= {"devices": 1}
        return launch(folder, name, world_size, environment, lambda rank: train(place, **options))

    found = {
        "whole": at("whole", 1),
        "killed1": at("killed1", 1, kill_at=(2, 3)),
        "killed2": at("killed2", 1),
        "last1": at("last1", 1, kill_at=(3, 1), wait=False),
        "last2": at("last2", 1, last=True),
        "cadence1": at("cadence1", 1, saver=False, kill_at=(1, 4)),
        "cadence2": at("cadence2", 1, saver=False, epochs=2),
        "epochs1": at("epochs1", 1, saver=False, kill_at=(2, 3)),
        "epochs2": at("epochs2", 1, saver=False),
        "ranks1": at("ranks1", 2, epochs=2),
        "ranks2": at("ranks2", 2, epochs=2),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
