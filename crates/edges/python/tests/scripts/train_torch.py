"""A small training that uses everything a resume must bring back. `python train_torch.py STEPS [WORKERS]`.

Prints each committed step and, at the end, the digest of everything that was trained."""

import hashlib
import random
import sys

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

import trackway


class Noisy(Dataset):
    """Items that depend on the random numbers of the process that loads them."""

    def __len__(self):
        return 44

    def __getitem__(self, index):
        noise = torch.randn(6) + random.random() + numpy.random.rand()
        return torch.full((6,), index / 44) + 0.1 * noise, torch.tensor([index % 3])


def parts(generator=None, workers=0):
    torch.manual_seed(1)
    random.seed(2)
    numpy.random.seed(3)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.BatchNorm1d(16), torch.nn.Dropout(0.3), torch.nn.Linear(16, 3)
    )
    decayed = [parameter for name, parameter in model.named_parameters() if name.endswith("weight")]
    plain = [parameter for name, parameter in model.named_parameters() if not name.endswith("weight")]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "lr": 0.02}]
    optimizer = torch.optim.AdamW(groups, lr=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, [0.01, 0.02], total_steps=200)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
    loader = DataLoader(Noisy(), 4, shuffle=True, num_workers=workers, generator=generator)
    return model, optimizer, scheduler, scaler, loader


def update(model, optimizer, scheduler, scaler, batch):
    inputs, labels = batch
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), labels.flatten())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    return loss


def digest(model, optimizer, scheduler, scaler, extra):
    """Of everything, the generators of the process included."""
    found = hashlib.sha256()
    tensors = [*model.state_dict().values()]
    for _, one in sorted(optimizer.state_dict()["state"].items()):
        tensors += [one[name] for name in sorted(one)]
    for tensor in tensors:
        found.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    rest = [optimizer.state_dict()["param_groups"], scheduler.state_dict(), scaler.state_dict(), extra]
    found.update(repr(rest).encode())
    found.update(repr((torch.rand(2), random.random(), numpy.random.rand())).encode())
    return found.hexdigest()


def train(run, steps, *, generator=None, workers=0, replay=True, each_step=lambda step: None):
    torch.set_num_threads(1)
    model, optimizer, scheduler, scaler, loader = parts(generator, workers)
    extra = {"seen": []}
    start = run.resume(model=model, optimizer=optimizer, scheduler=scheduler, scaler=scaler, extra=extra)
    for step, batch in run.batches(loader, start=start, steps=steps, replay=replay):
        loss = update(model, optimizer, scheduler, scaler, batch)
        extra["seen"] = [*extra["seen"][-5:], float(batch[0].sum())]
        run.log(step, loss=loss)
        run.checkpoint(step)
        each_step(step)
    return digest(model, optimizer, scheduler, scaler, extra)


if __name__ == "__main__":
    with trackway.attach() as main_run:
        print("attached", flush=True)
        found = train(
            main_run, int(sys.argv[1]), workers=int((sys.argv + ["0"])[2]), each_step=lambda s: print(s, flush=True)
        )
    print("digest", found, flush=True)
