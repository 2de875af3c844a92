"""Trains with DistributedDataParallel on the CPU: `torchrun --nproc-per-node=2 train_ddp.py STEPS [STEP]`, and waits to be killed
after that step."""

import hashlib
import os
import sys
import time

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import trackway


def main(steps: int, waits_at: int | None) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(64, 6), torch.randn(64, 1))
    loader = DataLoader(data, 4, sampler=DistributedSampler(data, shuffle=True))
    torch.manual_seed(100 + rank)  # different dropout on each rank

    print(f"pid {os.getpid()}\n", end="", flush=True)
    run = trackway.attach()
    start = run.resume(model=model, optimizer=optimizer)
    for step, (inputs, targets) in run.batches(loader, start=start, steps=steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
        run.checkpoint(step, wait=True)
        if rank == 0:
            print(f"step {step}\n", end="", flush=True)
        if step == waits_at:
            time.sleep(60)
    run.finish()
    found = hashlib.sha256(b"".join(value.numpy().tobytes() for value in model.state_dict().values()))
    found.update(torch.get_rng_state().numpy().tobytes())
    print(f"digest {rank} {found.hexdigest()}\n", end="", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
