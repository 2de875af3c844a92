#!/usr/bin/env python3
"""Measures saving and loading a training state with Trackway, with PyTorch and safetensors, and with nothing at all.

Usage: bench/checkpoint/peers.py --ours PATH/checkpoint_bench --python PATH/TO/PYTHON [--mebibytes 3072] [--rounds 5]

`PATH/TO/PYTHON` has torch, numpy and safetensors. Each tool holds the same state: 200 float32 tensors and Adam's two
moments of each. They take turns, one operation each per round, so that whatever else the machine does meets all of
them; ratios are taken within a round. Printed are medians and the spread from least to most. A save counts until its
bytes are synced, whichever tool makes it. Whatever loads into new memory does it in a new process, as every resume is: memory
that an old one freed just before, and its allocator kept, costs a third of what new memory does.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TENSORS = 200
GROUPS = ("model", "exp_avg", "exp_avg_sq")

# What is measured, in the order of a round: who, and which command. What a peer saved is read before the next saves, so
# that a round takes the disk three to four times the state.
ROUND = [
    ("ours", "memcpy"),
    ("ours", "save"),
    ("ours", "raw_write"),
    ("ours", "hash"),
    ("ours", "raw_buffered"),
    ("peers", "torch_save"),
    ("peers", "torch_load"),
    ("peers", "torch_load_mmap"),
    ("peers", "torch_load_warm"),
    ("ours", "save_little"),
    ("peers", "dcp_save"),
    ("peers", "dcp_load"),
    ("peers", "dcp_async_save"),
    ("ours", "raw_read"),
    ("ours", "load_into"),
    ("ours", "load_into_warm"),
    ("ours", "verify"),
    ("ours", "verify_warm"),
    ("peers", "safetensors_save"),
    ("peers", "safetensors_load"),
    ("peers", "safetensors_load_warm"),
    ("ours", "raw_read_fresh"),
    ("ours", "load"),
    ("ours", "copy_fresh"),
    ("ours", "load_warm"),
]
# Name, what is divided by what (seconds of a command, or another figure of it), and what is aimed for.
RATIOS = [
    ("stall / memcpy", ("save", "stall"), ("memcpy", "seconds"), "<= 1.3"),
    ("durable save: speed / raw direct write", ("raw_write", "seconds"), ("save", "seconds"), ">= 0.8"),
    ("durable save: speed / raw buffered write", ("raw_buffered", "seconds"), ("save", "seconds"), ""),
    ("durable save: speed / torch.save", ("torch_save", "seconds"), ("save", "seconds"), ">= 3"),
    ("durable save: speed / DCP save", ("dcp_save", "seconds"), ("save", "seconds"), ">= 3"),
    ("durable save: speed / DCP async_save", ("dcp_async_save", "seconds"), ("save", "seconds"), ""),
    ("durable save: speed / safetensors", ("safetensors_save", "seconds"), ("save", "seconds"), ""),
    ("a tensor of 600 changed: speed / everything", ("save", "seconds"), ("save_little", "seconds"), ""),
    ("a tensor of 600 changed: bytes / everything", ("save_little", "bytes_written"), ("save", "bytes_written"), ""),
    ("stall: DCP async_save / ours", ("dcp_async_save", "stall"), ("save", "stall"), ""),
    ("cold load into tensors: speed / raw read", ("raw_read", "seconds"), ("load_into", "seconds"), ">= 0.85"),
    ("cold verify: speed / raw read", ("raw_read", "seconds"), ("verify", "seconds"), ""),
    ("cold load: speed / raw read into new memory", ("raw_read_fresh", "seconds"), ("load", "seconds"), ">= 0.85"),
    ("cold load: speed / torch.load", ("torch_load", "seconds"), ("load", "seconds"), ""),
    ("cold load: speed / torch.load(mmap)", ("torch_load_mmap", "seconds"), ("load", "seconds"), ""),
    ("cold load: speed / safetensors", ("safetensors_load", "seconds"), ("load", "seconds"), ""),
    ("cold load into tensors: speed / DCP load", ("dcp_load", "seconds"), ("load_into", "seconds"), ""),
    ("warm load: seconds / one core's copy and hash", ("load_warm", "seconds"), ("copy_fresh", "seconds"), "<= 2"),
    ("warm load: speed / torch.load", ("torch_load_warm", "seconds"), ("load_warm", "seconds"), ""),
    ("warm load: speed / safetensors", ("safetensors_load_warm", "seconds"), ("load_warm", "seconds"), ""),
]


class Worker:
    """A process that holds a state and answers commands."""

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.state_bytes = self.answer()["bytes"]

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the process ended"}
        if "error" in answer:
            sys.exit(f"error: {answer['error']}")
        return answer

    def ask(self, command: str) -> dict:
        print(command, file=self.process.stdin, flush=True)
        return self.answer()


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):8.2f}  [{min(values):.2f} .. {max(values):.2f}]"


def report(rounds: list[dict], state_bytes: int) -> None:
    print(f"\n{state_bytes / 1e9:.2f} GB, {len(rounds)} rounds; medians [least .. most]\n\n  seconds, and GB/s of the median")
    for _, command in ROUND:
        seconds = [answers[command]["seconds"] for answers in rounds]
        print(f"  {command:<24}{spread(seconds)}   {state_bytes / statistics.median(seconds) / 1e9:6.2f} GB/s")
        stalls = [answers[command]["stall"] for answers in rounds if "stall" in answers[command]]
        if stalls:
            print(f"  {'  of which the loop waits':<24}{spread(stalls)}")
        extra = [answers[command]["extra_kib"] * 1024 / state_bytes for answers in rounds if "extra_kib" in answers[command]]
        if extra:
            print(f"  {'  extra memory, in states':<24}{spread(extra)}")
    print("\n  ratios within a round")
    for name, (above, above_figure), (below, below_figure), aim in RATIOS:
        ratios = [answers[above][above_figure] / answers[below][below_figure] for answers in rounds]
        print(f"  {name:<46}{spread(ratios)}   {aim}")


def measure(arguments: argparse.Namespace) -> None:
    folder = Path(tempfile.mkdtemp(prefix="trackway-bench-", dir=arguments.folder))
    try:
        for name in ("ours", "peers"):
            (folder / name).mkdir()
        size = str(arguments.mebibytes)
        workers = {
            "ours": Worker([str(arguments.ours), str(folder / "ours"), size]),
            "peers": Worker([str(arguments.python), __file__, "--worker", str(folder / "peers"), "--mebibytes", size]),
        }
        workers["ours"].ask("save")
        rounds = []
        for number in range(arguments.rounds):
            answers = {}
            for who, command in ROUND:
                answers[command] = workers[who].ask(command)
                print(json.dumps({"round": number, "who": who, "what": command, **answers[command]}), file=sys.stderr)
            rounds.append(answers)
        report(rounds, workers["ours"].state_bytes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---- the peers: everything below runs in the interpreter that has torch ----


def status_kib(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    return 0


def sync(path: Path) -> None:
    """Makes a file, or a folder with its files, durable."""
    for part in [path, *(path.rglob("*") if path.is_dir() else []), path.parent]:
        descriptor = os.open(part, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def forget_cache(path: Path) -> None:
    for part in path.rglob("*") if path.is_dir() else [path]:
        descriptor = os.open(part, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def warm_cache(path: Path) -> None:
    with path.open("rb") as file:
        while file.read(1 << 20):
            pass


def peak_of(work, path: Path | None = None) -> dict:
    """Seconds that a piece of work takes, with the sync of what it wrote, and its peak of memory."""
    Path("/proc/self/clear_refs").write_text("5")
    before = status_kib("VmRSS")
    started = time.perf_counter()
    kept = work()
    if path:
        sync(path)
    answer = {"seconds": time.perf_counter() - started, "extra_kib": max(0, status_kib("VmHWM") - before)}
    del kept
    return answer


class Loads:
    """What loads into new memory."""

    def __init__(self, folder: Path):
        import safetensors.torch
        import torch

        self.torch = torch
        self.safetensors = safetensors.torch
        self.folder = folder
        # What a library does once is not what is measured.
        torch.zeros(1).clone()

    def torch_load(self) -> dict:
        path = self.folder / "state.pt"
        forget_cache(path)
        return peak_of(lambda: self.torch.load(path, weights_only=True))

    def torch_load_warm(self) -> dict:
        path = self.folder / "state.pt"
        warm_cache(path)
        return peak_of(lambda: self.torch.load(path, weights_only=True))

    def torch_load_mmap(self) -> dict:
        """Mapped and then copied: until it is copied, nothing was read."""
        path = self.folder / "state.pt"
        forget_cache(path)

        def load():
            mapped = self.torch.load(path, weights_only=True, mmap=True)
            return {name: tensor.clone() for name, tensor in mapped.items()}

        return peak_of(load)

    def safetensors_load(self) -> dict:
        path = self.folder / "state.safetensors"
        forget_cache(path)
        return peak_of(lambda: self._copied(path))

    def safetensors_load_warm(self) -> dict:
        path = self.folder / "state.safetensors"
        warm_cache(path)
        return peak_of(lambda: self._copied(path))

    def _copied(self, path: Path) -> dict:
        return {name: tensor.clone() for name, tensor in self.safetensors.load_file(path).items()}


class Peers:
    def __init__(self, folder: Path, mebibytes: int):
        import torch

        self.torch = torch
        self.folder = folder
        elements = (mebibytes << 20) // 3 // 4 // TENSORS
        self.state = {f"{group}.{index}": torch.rand(elements) for group in GROUPS for index in range(TENSORS)}
        self.state_bytes = elements * 4 * TENSORS * 3

    def answer(self, command: str) -> dict:
        if not hasattr(Loads, command):
            return getattr(self, command)()
        new = [sys.executable, __file__, "--once", command, "--folder", str(self.folder)]
        return json.loads(subprocess.run(new, stdout=subprocess.PIPE, check=True).stdout)

    def empty(self, name: str) -> Path:
        """A path to write to. What was written before has been read by then and goes: disks are small."""
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return self.folder / name

    def torch_save(self) -> dict:
        path = self.empty("state.pt")
        return peak_of(lambda: self.torch.save(self.state, path), path)

    def safetensors_save(self) -> dict:
        from safetensors.torch import save_file

        path = self.empty("state.safetensors")
        return peak_of(lambda: save_file(self.state, path), path)

    def dcp_save(self) -> dict:
        from torch.distributed import checkpoint

        path = self.empty("dcp")
        return peak_of(lambda: checkpoint.save(self.state, checkpoint_id=path, no_dist=True), path)

    def dcp_async_save(self) -> dict:
        from torch.distributed import checkpoint

        path = self.empty("dcp-async")
        stalls = []

        def save():
            started = time.perf_counter()
            saved = checkpoint.async_save(self.state, checkpoint_id=path, no_dist=True)
            stalls.append(time.perf_counter() - started)
            return saved.result()

        return {**peak_of(save, path), "stall": stalls[0]}

    def dcp_load(self) -> dict:
        """Into tensors that exist."""
        from torch.distributed import checkpoint

        path = self.folder / "dcp"
        forget_cache(path)
        return peak_of(lambda: checkpoint.load(self.state, checkpoint_id=path, no_dist=True))


def work(arguments: argparse.Namespace) -> None:
    peers = Peers(Path(arguments.worker), arguments.mebibytes)
    # Libraries print to stdout as they like; answers go where they cannot.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps({"ready": True, "bytes": peers.state_bytes}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = peers.answer(line.strip())
        except Exception as error:
            answer = {"error": f"{line.strip()}: {error!r}"}
        print(json.dumps(answer), file=answers, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", type=Path, help="the example `checkpoint_bench`, built for release")
    parser.add_argument("--python", type=Path, help="an interpreter with torch, numpy and safetensors")
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; else the one for temporary files")
    parser.add_argument("--mebibytes", type=int, default=3072)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--once", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments)
    elif arguments.once:
        print(json.dumps(getattr(Loads(arguments.folder), arguments.once)()))
    elif arguments.ours and arguments.python:
        measure(arguments)
    else:
        parser.error("`--ours` and `--python` are needed")


if __name__ == "__main__":
    main()
