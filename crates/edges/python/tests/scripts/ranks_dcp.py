"""Trains and loads with PyTorch Distributed Checkpoint through Trackway, on several ranks with gloo.

`python ranks_dcp.py FOLDER`, in which `environments.json` holds the variables of each attempt. PyTorch is imported once;
the ranks of each launch are forked. Prints a JSON object: what each launch found, by its name."""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

import torch
import torch._dynamo  # what an optimizer imports at its first step: once, before the ranks are forked
import torch.distributed
import torch.distributed.checkpoint as dcp
from forked import launch
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard

import trackway
import trackway.dcp

STEPS = 6


class DyingPlanner(DefaultSavePlanner):
    """Ends its process while the second of its tensors is being copied."""

    copied = 0

    def resolve_data(self, item):
        self.copied += 1
        if self.copied == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().resolve_data(item)


class FailingPlanner(DefaultSavePlanner):
    """Cannot copy one of its tensors."""

    def resolve_data(self, item):
        raise RuntimeError("nothing to copy")


def fail_once():
    """A save that one rank cannot do, and the next one."""
    run = trackway.attach()
    run.resume()
    rank = torch.distributed.get_rank()
    state = {"w": DTensor.from_local(torch.full((2,), float(rank)), init_device_mesh("cpu", (2,)), [Shard(0)])}
    try:
        trackway.dcp.save(run, 1, state, planner=FailingPlanner() if rank == 1 else None)
        why = None
    except dcp.api.CheckpointException as error:
        why = str(error)
    saved = trackway.dcp.save(run, 2, state, wait=True)
    run.finish()
    return {"why": why, "saved": saved}


def trained(mesh_shape):
    """A model with shards, its optimizer, and a scheduler that all ranks have alike."""
    torch.manual_seed(1)
    names = ("replicate", "shard")[-len(mesh_shape) :]
    mesh = init_device_mesh("cpu", mesh_shape, mesh_dim_names=names)
    # Seven rows: no number of ranks above one divides them.
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3), torch.nn.Linear(3, 1))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2)


def whole(value):
    return value.full_tensor() if isinstance(value, DTensor) else value


def digest(model, optimizer):
    """Of the whole state, which is the same for any number of ranks."""
    found = hashlib.sha256()
    for name, value in model.state_dict().items():
        found.update(name.encode() + whole(value).numpy().tobytes())
    for moments in optimizer.state_dict()["state"].values():
        found.update(b"".join(whole(moments[name]).numpy().tobytes() for name in sorted(moments)))
    return found.hexdigest()


def train(steps, mesh_shape, dies_at=None):
    rank = torch.distributed.get_rank()
    model, optimizer, scheduler = trained(mesh_shape)
    run = trackway.attach()
    state = {"training": trackway.dcp.Training(model, optimizer), "note": {"text": "ä", "count": 3}}
    start = trackway.dcp.resume(run, state, scheduler=scheduler)
    data = torch.randn(24, 5, generator=torch.Generator().manual_seed(3))
    third = None
    for step, index in run.batches(range(rank, 1_000, torch.distributed.get_world_size()), start=start, steps=steps):
        optimizer.zero_grad()
        noise = torch.randn(5)
        (model(data[index % 24] + noise) ** 2).mean().backward()
        optimizer.step()
        scheduler.step()
        third = digest(model, optimizer) if step == 3 else third
        planner = DyingPlanner() if step == dies_at and rank == 1 else None
        trackway.dcp.save(run, step, state, planner=planner)
    run.finish()
    noise = torch.get_rng_state().numpy().tobytes()
    return {
        "from": int(start), "digest": digest(model, optimizer), "note": state["note"],
        "own": hashlib.sha256(noise).hexdigest(), "rate": scheduler.get_last_lr()[0], "third": third,
    }  # fmt: skip


def train_sharded(steps, mesh_shape):
    """The same with the parts of each rank in `Sharded`, without DCP."""
    model, optimizer, scheduler = trained(mesh_shape)
    run = trackway.attach()
    rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    try:
        start = run.resume(model=trackway.Sharded(model), optimizer=trackway.Sharded(optimizer), scheduler=scheduler)
    except trackway.InputError as error:
        return {"error": str(error)}
    for step, index in run.batches(range(rank, 1_000, world_size), start=start, steps=steps):
        optimizer.zero_grad()
        (model(torch.full((1, 5), index / 10) + torch.randn(5)) ** 2).mean().backward()
        optimizer.step()
        scheduler.step()
        run.checkpoint(step)
    run.finish()
    return {"from": int(start), "digest": digest(model, optimizer), "rate": scheduler.get_last_lr()[0]}


def load_at(root, step):
    """Loads a checkpoint outside its run, by the plain interface of DCP."""
    mesh = (torch.distributed.get_world_size(),)
    model, optimizer, _ = trained(mesh)
    state = {"training": trackway.dcp.Training(model, optimizer)}
    dcp.load(state, storage_reader=trackway.dcp.StorageReader(root, step=step))
    return {"digest": digest(model, optimizer)}


def grouped(folder, name, world_size, work):
    """The work, within a process group."""

    def joined(rank):
        store = torch.distributed.FileStore(str(folder / f"store-{name}"), world_size)
        torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
        return work()

    return joined


def main(folder):
    torch.set_num_threads(1)
    given = json.loads((folder / "environments.json").read_text())
    root = given["killed1"]["TRACKWAY_CHECKPOINTS"]

    def at(name, world_size, work):
        return launch(folder, name, world_size, given[name], grouped(folder, name, world_size, work))

    found = {
        "whole": at("whole", 2, lambda: train(STEPS, (2,))),
        "killed1": at("killed1", 2, lambda: train(STEPS, (2,), dies_at=4)),
        "killed2": at("killed2", 2, lambda: train(STEPS, (2,))),
        **{f"by{count}": at(f"by{count}", count, lambda n=count: train(0, (n,))) for count in (1, 3)},
        "hybrid1": at("hybrid1", 2, lambda: train(2, (2, 1))),
        "hybrid2": at("hybrid2", 2, lambda: train(0, (1, 2))),
        "plain": at("plain", 2, lambda: load_at(root, 3)),
        "failed": at("failed", 2, fail_once),
        "rehearsal": at("rehearsal", 2, lambda: train(STEPS, (2,))),
        "sharded0": at("sharded0", 2, lambda: train_sharded(5, (2,))),
        "sharded1": at("sharded1", 2, lambda: train_sharded(3, (2,))),
        "sharded2": at("sharded2", 2, lambda: train_sharded(5, (2,))),
        "sharded3": at("sharded3", 3, lambda: train_sharded(0, (3,))),
        "sharded4": at("sharded4", 1, lambda: train_sharded(0, (1,))),
        "sharded5": at("sharded5", 2, lambda: train_sharded(0, (2, 1))),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
