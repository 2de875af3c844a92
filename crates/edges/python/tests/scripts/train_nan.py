"""A small training in PyTorch whose third layer returns NaN for one batch. `python train_nan.py STEPS [FAULT]`.

FAULT is `forward` (the logarithm of a negative input), `backward` (the root of 0, whose value is finite and whose
gradient is not), `spike` (one batch of huge values) or `none`; it happens on batch BAD_BATCH, counted from 0."""

import sys

import torch

import trackway

BAD_BATCH = 22


class Gate(torch.nn.Module):
    def __init__(self, fault):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(8))
        self.fault = fault

    def forward(self, inputs):
        scaled = inputs * self.gain
        if self.fault == "forward":
            return torch.log(scaled + 10)
        if self.fault == "backward":
            return torch.sqrt(torch.abs(scaled))
        return scaled


def batches(fault):
    generator = torch.Generator().manual_seed(3)
    for number in range(200):
        inputs, targets = torch.rand(16, 4, generator=generator), torch.rand(16, 1, generator=generator)
        if number == BAD_BATCH and fault == "forward":
            inputs = inputs - 1e6
        if number == BAD_BATCH and fault == "backward":
            inputs = inputs * 0 - 1e3
        if number == BAD_BATCH and fault == "spike":
            inputs, targets = inputs * 300, targets - 4000
        yield inputs, targets


def main():
    steps, fault = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "forward"
    run = trackway.attach()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), Gate(fault), torch.nn.Linear(8, 1))
    with torch.no_grad():
        model[0].weight.fill_(0.1)
        model[0].bias.fill_(0.1)
    if fault == "forward":
        model[1] = torch.nn.Identity()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    start = run.resume(model=model, optimizer=optimizer)
    for step, (inputs, targets) in run.batches(list(batches(fault)), start=start, steps=steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        run.log(step, loss=loss.item())
        run.checkpoint(step)
    run.finish()


if __name__ == "__main__":
    main()
