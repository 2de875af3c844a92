#!/usr/bin/env python3
"""Measures how long a training loop waits for a save, and how long until the save survives a power failure: FSDP2 states
of several ranks through Trackway's DCP storage, PyTorch's, and `torch.save`.

Usage: bench/checkpoint/ranks.py --ours PATH/trackway --python PATH/TO/PYTHON [--ranks 2] [--mebibytes 3072] [--rounds 5] [--device cuda]

`PATH/TO/PYTHON` has torch and Trackway's package. One training with parameters and Adam's moments of the given size together,
sharded over the ranks (`gloo`; with `--device cuda` one rank and its GPU); the ways to save take turns on the same state, in
one process per rank, with a training step between two saves. A save counts until its bytes are synced, whichever way it is made
(ours: until every rank sees the commit; what retention reads and deletes after it is waited for outside the figures);
a wait until the call returns on every rank. Ratios are taken within a round; printed are medians and the spread.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from peers import spread, sync

LAYERS = 16
COMMIT_SECONDS_MAX = 600
RATIOS = [
    ("wait: DCP save / ours", "dcp", "ours", "wait"),
    ("wait: DCP async_save / ours", "dcp_async", "ours", "wait"),
    ("wait: DCP async_save, pinned and kept / ours", "dcp_async_staged", "ours", "wait"),
    ("wait: torch.save / ours", "torch_save", "ours", "wait"),
    ("wait: ours / copy of the state in memory", "ours", "copy", "wait"),
    ("durable: DCP save / ours", "dcp", "ours", "durable"),
    ("durable: DCP async_save / ours", "dcp_async", "ours", "durable"),
    ("durable: torch.save / ours", "torch_save", "ours", "durable"),
]


def measure(arguments: argparse.Namespace) -> None:
    folder = Path(tempfile.mkdtemp(prefix="trackway-bench-", dir=arguments.folder))
    try:
        worker = [Path(__file__).resolve(), "--worker", "result.json", "--mebibytes", arguments.mebibytes, "--rounds", arguments.rounds, "--device", arguments.device]
        worker += ["--ways", *arguments.ways] if arguments.ways else []
        launcher = [] if arguments.ranks == 1 else ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", arguments.ranks]
        command = [str(part) for part in (arguments.python, *launcher, *worker)]
        (folder / "run.toml").write_text(f"[run]\nname = \"ranks\"\ncommand = {json.dumps(command)}\n[checkpoint]\nadopt = []\nkeep = {{ last = 2 }}\n")
        environment = os.environ | {"TRACKWAY_HOME": str(folder / "home")}
        subprocess.run([arguments.ours.resolve(), "run", "run.toml"], cwd=folder, env=environment, check=True, stdout=sys.stderr)
        report(json.loads((folder / "result.json").read_text()), arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def report(result: dict, arguments: argparse.Namespace) -> None:
    rounds = result["rounds"]
    print(f"\n{result['bytes'] / 1e9:.2f} GB, {arguments.ranks} ranks, {result['device']}, {len(rounds)} rounds; medians [least .. most]\n\n  seconds")
    for way in rounds[0]:
        for figure in rounds[0][way]:
            print(f"  {way + ', ' + figure:<34}{spread([one[way][figure] for one in rounds])}")
    print("\n  ratios within a round")
    for name, above, below, figure in RATIOS:
        if above in rounds[0] and below in rounds[0]:
            print(f"  {name:<46}{spread([one[above][figure] / one[below][figure] for one in rounds])}")
    print(f"\n  first save, wait: {', '.join(f'{way} {seconds:.2f}' for way, seconds in result['first'].items())}")


# ---- the training: everything below runs on every rank ----


class Training:
    def __init__(self, device: str, mebibytes: int):
        import torch
        import torch.distributed as distributed
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        self.torch, self.distributed, self.device = torch, distributed, device
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", "29512")
        os.environ.setdefault("RANK", "0")
        os.environ.setdefault("WORLD_SIZE", "1")
        distributed.init_process_group("cpu:gloo,cuda:nccl" if device == "cuda" else "gloo")
        width = int(((mebibytes << 20) / 3 / 4 / LAYERS) ** 0.5) // 64 * 64
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(*[torch.nn.Linear(width, width, bias=False) for _ in range(LAYERS)]).to(device)
        mesh = init_device_mesh(device, (distributed.get_world_size(),))
        for layer in self.model:
            fully_shard(layer, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self.rows = torch.randn(8, width, device=device)
        self.bytes = 3 * LAYERS * width * width * 4
        self.step = 0

    def train(self) -> None:
        """Every save stores other bytes."""
        self.model(self.rows).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1

    def state(self) -> dict:
        from trackway.dcp import Training as State

        return {"training": State(self.model, self.optimizer)}

    def barrier(self) -> None:
        if self.device == "cuda":
            self.torch.cuda.synchronize()
        self.distributed.barrier()

    def local(self) -> list:
        """This rank's tensors."""
        moments = [moment for state in self.optimizer.state.values() for moment in (state["exp_avg"], state["exp_avg_sq"])]
        return [getattr(tensor, "to_local", lambda tensor=tensor: tensor)() for tensor in (*self.model.parameters(), *moments)]


class Ways:
    """The ways to save: each returns how long the loop waited, and a function that ends when the save is durable."""

    def __init__(self, training: Training, folder: Path):
        import trackway
        from torch.distributed import checkpoint

        self.training, self.folder, self.dcp = training, folder, checkpoint
        self.run = trackway.attach()
        self.stager = None
        # DCP's thread calls collectives while this one does: in one group they would meet each other, and both wait for ever.
        self.group = training.distributed.new_group(backend="gloo")

    def ours(self):
        import trackway.dcp

        step = self.training.step
        trackway.dcp.save(self.run, step, self.training.state(), force=True)
        return lambda: self.committed(step)

    def committed(self, step: int) -> None:
        from trackway import checkpoint

        until = time.monotonic() + COMMIT_SECONDS_MAX
        while not any(one.step == step and one.state == "committed" for one in checkpoint.list(os.environ["TRACKWAY_CHECKPOINTS"])):
            if time.monotonic() > until:
                raise TimeoutError(f"step {step} was not committed within {COMMIT_SECONDS_MAX} s")
            time.sleep(0.005)

    def torch_save(self):
        path = self.path("torch_save").with_suffix(f".{os.environ['RANK']}")
        self.training.torch.save({"tensors": self.training.local(), "step": self.training.step}, path)
        return lambda: sync(path)

    def dcp_save(self):
        path = self.path("dcp")
        self.dcp.save(self.training.state(), checkpoint_id=path)
        return lambda: sync(path)

    def dcp_async(self):
        path = self.path("dcp_async")
        saving = self.dcp.async_save(self.training.state(), checkpoint_id=path, process_group=self.group)
        return lambda: (saving.result(), sync(path))

    def dcp_async_staged(self):
        """What PyTorch has for the shortest wait on a GPU: memory that is pinned once, and copies that do not block."""
        from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

        path = self.path("dcp_async_staged")
        self.stager = self.stager or DefaultStager(StagingOptions(True, False, False, True))
        state = {name: part.state_dict() for name, part in self.training.state().items()}
        saving = self.dcp.async_save(state, checkpoint_id=path, async_stager=self.stager, process_group=self.group)
        future = getattr(saving, "upload_completion", saving)
        return lambda: (future.result(), sync(path))

    def copy(self):
        """The floor of a wait: this rank's tensors copied to memory that was used before."""
        local = self.training.local()
        if not hasattr(self, "copies"):
            pinned = self.training.device == "cuda"
            self.copies = [self.training.torch.empty(one.shape, dtype=one.dtype, pin_memory=pinned).fill_(0) for one in local]
        for copy, tensor in zip(self.copies, local, strict=True):
            copy.copy_(tensor, non_blocking=True)
        if self.training.device == "cuda":
            self.training.torch.cuda.synchronize()
        return lambda: None

    def path(self, name: str) -> Path:
        """An empty place. Disks are small: what another way saved goes."""
        if os.environ["RANK"] == "0":
            for path in self.folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.training.barrier()
        return self.folder / name


def measured(training: Training, save, settle) -> dict:
    settle()  # of the way before
    training.train()
    training.barrier()
    started = time.perf_counter()
    finish = save()
    training.barrier()
    wait = time.perf_counter() - started
    finish()
    training.barrier()
    return {"wait": wait, "durable": time.perf_counter() - started}


def taken_in_turns(training: Training, chosen: dict, settle, rounds: int) -> list[dict]:
    """The figures of each round. A way that fails is left out of all of them: PyTorch 2.11 cannot use a stager twice."""
    done = []
    for _ in range(rounds):
        done.append({})
        for way, save in list(chosen.items()):
            try:
                done[-1][way] = measured(training, save, settle)
            except (KeyError, RuntimeError) as error:
                print(f"left out: {way} failed: {error!r}", file=sys.stderr)
                del chosen[way]
    return [{way: figures for way, figures in one.items() if way in chosen} for one in done]


def work(arguments: argparse.Namespace) -> None:
    training = Training(arguments.device, arguments.mebibytes)
    folder = Path("peers")
    folder.mkdir(exist_ok=True)
    ways = Ways(training, folder)
    chosen = {"ours": ways.ours, "copy": ways.copy, "torch_save": ways.torch_save, "dcp": ways.dcp_save, "dcp_async": ways.dcp_async}
    if arguments.device == "cuda":
        chosen["dcp_async_staged"] = ways.dcp_async_staged
    if arguments.ways:
        chosen = {way: chosen[way] for way in arguments.ways}
    rounds = taken_in_turns(training, chosen, ways.run._wait, arguments.rounds + 1)
    first = {way: figures["wait"] for way, figures in rounds.pop(0).items()}
    if os.environ["RANK"] == "0":
        device = training.torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU"
        Path(arguments.worker).write_text(json.dumps({"bytes": training.bytes, "device": device, "rounds": rounds, "first": first}))
    training.barrier()
    ways.run.finish()
    training.distributed.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", type=Path, help="the binary, built for release")
    parser.add_argument("--python", type=lambda path: Path(path).absolute(), default=Path(sys.executable))
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; else the one for temporary files")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--mebibytes", type=int, default=3072)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", nargs="+", help="only these: every other one needs the size of the state in memory once more")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments)
    elif arguments.ours:
        measure(arguments)
    else:
        parser.error("`--ours` is needed")


if __name__ == "__main__":
    main()
