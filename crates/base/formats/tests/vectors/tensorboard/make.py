"""Makes the event files of this folder with the real writers: torch 2.15.0, tensorboard 2.21.0, tensorboardX 2.6.5.

    python make.py FOLDER

- `torch`: scalars in both forms, a histogram and a text between them, hyperparameters.
- `restarted`: two writers on one folder, the second with `purge_step`, as a resumed script does.
- `tensorboardx`: scalars by tensorboardX.
- `scalars.json`: what TensorBoard's own EventAccumulator reads of each, restarts obeyed.
"""

import json
import math
import sys
import time
from pathlib import Path

import tensorboardX
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util
from torch.utils.tensorboard import SummaryWriter


def write(folder):
    with SummaryWriter(folder / "torch") as writer:
        for step in range(5):
            writer.add_scalar("train/loss", 1 / (1 + step), step)
            writer.add_scalar("val/loss", torch.tensor(2.0 / (1 + step)), step, new_style=True)
            writer.add_scalar("val/double", 1e-300, step, new_style=True, double_precision=True)
        writer.add_scalar("train/loss", math.nan, 5)
        writer.add_histogram("weights", torch.arange(100.0), 5)
        writer.add_text("note", "no number", 5)
        writer.add_hparams({"lr": 0.1, "batch": 32, "optimizer": "sgd", "nesterov": True}, {"hparam/loss": 0.2}, run_name=".")
    with SummaryWriter(folder / "restarted") as writer:
        for step in range(8):
            writer.add_scalar("loss", 1 + step, step)
    time.sleep(1.1)
    with SummaryWriter(folder / "restarted", purge_step=4) as writer:
        for step in range(4, 10):
            writer.add_scalar("loss", -step, step)
    with tensorboardX.SummaryWriter(str(folder / "tensorboardx")) as writer:
        for step in range(3):
            writer.add_scalar("loss", 0.5**step, step)


def read(folder):
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    scalars = {tag: [[event.step, event.value] for event in accumulator.Scalars(tag)] for tag in accumulator.Tags()["scalars"]}
    for tag in accumulator.Tags()["tensors"]:
        events = accumulator.Tensors(tag)
        if events[0].tensor_proto.dtype != 7:
            scalars[tag] = [[event.step, float(tensor_util.make_ndarray(event.tensor_proto))] for event in events]
    return scalars


if __name__ == "__main__":
    at = Path(sys.argv[1])
    write(at)
    told = {name: read(at / name) for name in ["torch", "restarted", "tensorboardx"]}
    (at / "scalars.json").write_text(json.dumps(told, indent=1).replace("NaN", "null") + "\n")
