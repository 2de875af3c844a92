"""Trains with the Trainer, whose checkpoints are saved through Trackway.

`python train_transformers.py FOLDER`, in which `environments.json` holds the variables of each attempt. Prints a JSON
object: what each launch found, by its name."""

import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch._dynamo  # what an optimizer imports at its first step: once, before the processes are forked
import transformers
from forked import launch
from transformers import TrainerCallback

from trackway.callbacks import TransformersCallback
from trackway.transformers import Trainer


class Kill(TrainerCallback):
    """Ends the process at the end of a step, after what the Trainer does there."""

    def __init__(self, step):
        self.step = step

    def on_step_begin(self, args, state, control, **_):
        if state.global_step == self.step:
            time.sleep(1)  # what was saved before is committed
            os.kill(os.getpid(), signal.SIGKILL)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Dropout(0.3), torch.nn.Linear(6, 1))

    def forward(self, inputs, labels):
        output = self.layers(inputs)
        return {"loss": torch.nn.functional.mse_loss(output, labels), "logits": output}


def train(folder, *, kill_at=None, steps=16, rate=0.05, **options):
    generator = torch.Generator().manual_seed(3)
    rows = [{"inputs": torch.randn(4, generator=generator), "labels": torch.randn(1, generator=generator)} for _ in range(40)]
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "trainer"), per_device_train_batch_size=5, learning_rate=rate, max_steps=steps,
        logging_steps=2, report_to=[], disable_tqdm=True, use_cpu=True, **options,
    )  # fmt: skip
    callbacks = [TransformersCallback()] if kill_at is None else [TransformersCallback(), Kill(kill_at)]
    trainer = Trainer(
        model=Model(), args=arguments, train_dataset=rows, eval_dataset=rows[:10], callbacks=callbacks
    )
    trainer.train()
    trainer.run.finish()
    found = hashlib.sha256(b"".join(value.numpy().tobytes() for value in trainer.model.state_dict().values()))
    state = trainer.optimizer.state_dict()["state"]
    for moments in state.values():
        found.update(b"".join(moments[name].numpy().tobytes() for name in sorted(moments)))
    noise = hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()
    again = trainer.evaluate()["eval_loss"]
    losses = [one["eval_loss"] for one in trainer.state.log_history if "eval_loss" in one]
    return {
        "digest": found.hexdigest(), "noise": noise, "rate": trainer.lr_scheduler.get_last_lr(), "losses": losses,
        "step": trainer.state.global_step, "best": trainer.state.best_metric, "own": os.listdir(folder / "trainer"),
        "first": trainer._initial_global_step, "again": again,
    }  # fmt: skip


def main(folder):
    torch.set_num_threads(1)
    given = json.loads((folder / "environments.json").read_text())

    def at(name, world_size, **options):
        place = folder / name.rstrip("0123456789")
        (place / "trainer").mkdir(parents=True, exist_ok=True)
        environment = given[name]
        if world_size > 1:
            environment = {**environment, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": given["port"]}
        return launch(folder, name, world_size, environment, lambda rank: train(place, **options))

    best = {"eval_strategy": "steps", "eval_steps": 4, "load_best_model_at_end": True, "save_steps": 4, "rate": 0.5}
    found = {
        "whole": at("whole", 1, save_steps=1000),
        "killed1": at("killed1", 1, save_steps=1000, kill_at=11),
        "killed2": at("killed2", 1, save_steps=1000),
        "best1": at("best1", 1, **best, kill_at=13),
        "best2": at("best2", 1, **best),
        "epochs1": at("epochs1", 1, save_steps=1000, kill_at=11),
        "epochs2": at("epochs2", 1, save_steps=1000),
        "ranks0": at("ranks0", 2, save_steps=1000, steps=6),
        "ranks1": at("ranks1", 2, save_steps=2, steps=6, kill_at=5),
        "ranks2": at("ranks2", 2, save_steps=2, steps=6),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
