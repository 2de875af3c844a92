"""Trains small PyTorch models for real, healthy and with faults, on the wall clock, and runs the detectors on them.

    cargo build --release -p trackway-rules --example detect_stream
    python bench/detect/torch_runs.py target/release/examples/detect_stream [RUNS_PER_FAULT]

It needs PyTorch (the CPU is enough). The figures that count are those of `detector_score`, which trains thousands of times more steps;
this is the same on another implementation of everything: autograd, optimizers, AMP's loss scale, the wall clock.
"""

import json
import math
import subprocess
import sys
import time

import torch
from torch import nn

STEPS, FROM, ROWS = 700, 400, 4096


def model_of(seed):
    torch.manual_seed(seed)
    width = [16, 32, 64][seed % 3]
    act = [nn.ReLU, nn.Tanh, nn.GELU][seed // 3 % 3]
    return nn.Sequential(nn.Linear(20, width), act(), nn.Dropout(0.1), nn.Linear(width, width), act(), nn.Linear(width, 4))


def data_of(seed):
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(4, 20, generator=generator)
    labels = torch.randint(4, (ROWS,), generator=generator)
    return centres[labels] * 0.6 + torch.randn(ROWS, 20, generator=generator), labels


def spoil_weights(model):
    with torch.no_grad():
        weights = model[0].weight.view(torch.int32).view(-1)
        weights[::97] ^= 1 << 30


# Each fault: where it acts, and the detectors that may name it.
NUMBERS = {"non_finite", "loss_spike", "loss_shift", "gradient_explosion", "learning_rate"}
FAULTS = {
    "healthy": set(),
    "learning rate × 100": NUMBERS,
    "learning rate 0": {"learning_rate"},
    "NaN in a batch": {"non_finite"},
    "inputs × 50": NUMBERS,
    "labels shuffled": {"loss_spike", "loss_shift"},
    "same batch": {"dead_input"},
    "layer frozen": {"gradient_vanishing"},
    "gradients not zeroed": NUMBERS,
    "weights corrupted": NUMBERS | {"gradient_vanishing"},
    "optimizer never steps": {"learning_rate"},
    "loader sleeps": {"data_starvation", "throughput_drop"},
    "memory leak": {"memory_creep"},
    "hang": {"hang"},
}


def train(seed, fault):
    """Yields lines for `detect_stream`."""
    model, (inputs, labels) = model_of(seed), data_of(seed)
    rate = 2e-3
    optimizer = torch.optim.AdamW(model.parameters(), rate) if seed % 2 else torch.optim.SGD(model.parameters(), 0.05, 0.9)
    rate = optimizer.param_groups[0]["lr"]
    generator = torch.Generator().manual_seed(seed + 1)
    kept, leaked = None, 0
    for step in range(STEPS):
        broken = fault if step >= FROM else "healthy"
        began = time.perf_counter()
        rows = torch.randint(ROWS, (32,), generator=generator)
        if broken == "same batch":
            rows = kept = rows if kept is None else kept
        x, y = inputs[rows].clone(), labels[rows]
        if broken == "loader sleeps":
            time.sleep(0.004)
        waited = time.perf_counter() - began
        if broken == "NaN in a batch" and step == FROM:
            x[0, 0] = math.nan
        if broken == "inputs × 50":
            x = x * 50 + 100
        if broken == "labels shuffled":
            y = y[torch.randperm(32, generator=generator)]
        if broken == "weights corrupted" and step == FROM:
            spoil_weights(model)
        if broken == "learning rate × 100":
            optimizer.param_groups[0]["lr"] = rate * 100
        if broken == "learning rate 0":
            optimizer.param_groups[0]["lr"] = 0.0
        if broken == "hang":
            for quiet in range(300):
                yield {"quiet": quiet}
            return
        if broken != "gradients not zeroed":
            optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        if broken == "layer frozen":
            model[0].weight.grad.zero_()
            model[0].bias.grad.zero_()
        parts = {f"grad_norm/{name}": norm_of(module) for name, module in model.named_children() if hasattr(module, "weight")}
        before = [parameter.detach().clone() for parameter in model.parameters()]
        if broken != "optimizer never steps":
            optimizer.step()
        moved = math.sqrt(sum(float((new.detach() - old).pow(2).sum()) for new, old in zip(model.parameters(), before)))
        size = math.sqrt(sum(float(old.pow(2).sum()) for old in before))
        if broken == "memory leak":
            leaked += 200_000
        values = {
            "loss": float(loss.detach()),
            "learning_rate": optimizer.param_groups[0]["lr"],
            "grad_norm": math.sqrt(sum(norm * norm for norm in parts.values())),
            "update_ratio": moved / size if size else 0.0,
            "batch_digest": float(int(x.double().abs().sum().item() * 1e6) % (1 << 52)) if torch.isfinite(x).all() else 0.0,
            "batch_wait_seconds": waited,
            "step_seconds": time.perf_counter() - began,
            "memory_allocated_bytes": float(4_000_000 + leaked),
            **parts,
        }
        yield {"step": step, "seconds": time.time(), "values": values}
        if step % 50 == 49:
            with torch.no_grad():
                model.eval()
                held_out = data_of(seed)[0][:512], labels[:512]
                value = float(nn.functional.cross_entropy(model(held_out[0]), held_out[1]))
                model.train()
            yield {"step": step, "seconds": time.time(), "values": {"val_loss": value}}


def norm_of(module):
    return math.sqrt(sum(float(p.grad.pow(2).sum()) for p in module.parameters() if p.grad is not None))


def line(record):
    values = record.get("values", {})
    finite = {name: value if math.isfinite(value) else str(value) for name, value in values.items()}
    return json.dumps({**record, "values": finite} if values else record)


def main():
    program, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6
    torch.set_num_threads(1)
    print("| fault | runs | found | by | median delay, steps | false alarms |\n|---|--:|--:|---|--:|--:|")
    steps = alarms_in_all = 0
    for place, (fault, expected) in enumerate(FAULTS.items()):
        delays, by, alarms, count = [], {}, 0, runs * (4 if fault == "healthy" else 1)
        for seed in range(count):
            stream = "\n".join(line(record) for record in train(1000 * place + seed, fault))
            reported = subprocess.run([program], input=stream, capture_output=True, text=True, check=True).stdout
            firings = [json.loads(text) for text in reported.splitlines()]
            healthy_until = STEPS if fault == "healthy" else FROM
            hits = [f for f in firings if f["detector"] in expected and f["step"] >= FROM - 1]
            false = [f for f in firings if f["step"] < healthy_until - (f["detector"] == "hang")]
            alarms += len(false)
            for firing in false:
                print(f"false alarm: {firing['detector']} at step {firing['step']}: {firing['evidence']}", file=sys.stderr)
            steps += healthy_until
            if hits:
                delays.append(max(0, min(f["step"] for f in hits) - FROM))
            for name in {f["detector"] for f in hits}:
                by[name] = by.get(name, 0) + 1
        alarms_in_all += alarms
        names = ", ".join(f"`{name}` {times}" for name, times in sorted(by.items()))
        delay = sorted(delays)[(len(delays) - 1) // 2] if delays else "–"
        found = len(delays) if expected else "–"
        print(f"| {fault} | {count} | {found} | {names} | {delay} | {alarms} |", flush=True)
    print(f"\n{steps} healthy steps, {alarms_in_all} false alarms")


if __name__ == "__main__":
    main()
