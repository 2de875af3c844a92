#!/usr/bin/env python3
"""Trains a small character transformer in PyTorch, on any text, and resumes exactly wherever it was killed.

Dropout, a shuffling DataLoader, AdamW and a learning-rate schedule: what usually makes a resumed run another run. All
of their state is in the checkpoints, so that N steps at once and N steps with kills in between end in the same weights,
bit for bit. Needs `torch` and the package `trackway`; without Trackway around it, it trains just the same.

Exit codes: 0 all steps done, 143 stopped on request after a checkpoint.
"""

import argparse
import csv
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import trackway
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from trackway import checkpoint

SUFFIXES = {".rs", ".py", ".md", ".txt", ".toml"}
EXIT_STOPPED = 143
# Windows that an evaluation looks at, and characters at the end of each that are guessed.
WINDOWS_MAX = 1024
COMPLETED = 4


class Windows(Dataset):
    """Every `length + 1` characters of a text, half overlapping; the first `length` are input, the last the target."""

    def __init__(self, characters: torch.Tensor, length: int):
        self.characters, self.length = characters, length

    def __len__(self) -> int:
        return max(0, 2 * (len(self.characters) - 1) // self.length - 1)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        start = index * self.length // 2
        window = self.characters[start : start + self.length + 1]
        return window[:-1], window[1:]


class CharacterModel(nn.Module):
    """A decoder of two layers. The embedding and the output have tied weights."""

    def __init__(self, vocabulary: int, length: int, width: int = 64, dropout: float = 0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length), persistent=False)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        length = characters.shape[1]
        hidden = self.embedding(characters) + self.position[:length]
        return self.head(self.layers(hidden, mask=self.mask[:length, :length], is_causal=True))


def read_text(places: list[Path]) -> str:
    """The text below the places, in the order of the paths."""
    files = [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])]
    texts = [file.read_text(encoding="utf-8") for file in files if file.suffix in SUFFIXES or file in places]
    return "\n".join(texts)


def encode(text: str) -> tuple[torch.Tensor, int]:
    """The characters as numbers, and how many different ones there are."""
    alphabet = {character: number for number, character in enumerate(sorted(set(text)))}
    return torch.tensor([alphabet[character] for character in text], dtype=torch.int64), len(alphabet)


@torch.no_grad()
def window_losses(model: nn.Module, data: Windows, windows: range, batch: int) -> list[float]:
    """The loss of all characters of each window, in nats. Draws no random numbers."""
    model.eval()
    losses = []
    for first in range(0, len(windows), batch):
        inputs, targets = zip(*(data[index] for index in windows[first : first + batch]), strict=True)
        scores = model(torch.stack(inputs)).transpose(1, 2)
        losses += functional.cross_entropy(scores, torch.stack(targets), reduction="none").sum(1).tolist()
    model.train()
    return losses


def validate(model: nn.Module, data: Windows, batch: int) -> float:
    """Mean loss on at most eight batches of the text that was kept back, without overlaps."""
    losses = window_losses(model, data, range(0, len(data), 2)[: 8 * batch], batch)
    return sum(losses) / (len(losses) * data.length)


@torch.no_grad()
def completions(model: nn.Module, start: torch.Tensor, count: int, temperature: float) -> torch.Tensor:
    """So many continuations of `COMPLETED` characters; with temperature 0 the most likely one."""
    drawn = start.repeat(count, 1)
    for _ in range(COMPLETED):
        scores = model(drawn)[:, -1]
        chances = functional.softmax(scores / (temperature or 1), 1)
        following = torch.multinomial(chances, 1) if temperature else scores.argmax(1, keepdim=True)
        drawn = torch.cat([drawn, following], 1)
    return drawn[:, -COMPLETED:]


def evaluate(model: nn.Module, data: Windows, text: str, options: argparse.Namespace) -> None:
    """Evaluates the checkpoint that `trackway eval run` gives, on windows of the held-out text without overlaps: their losses, or with
    `--samples` whether the characters at their ends are guessed."""
    model.load_state_dict(checkpoint.given(framework="torch")["model"])
    model.eval()
    windows = range(0, len(data), 2)[:WINDOWS_MAX]
    rows = losses(model, data, windows, text, options) if options.samples == 0 else guesses(model, data, windows, options)
    path = Path(os.environ["TRACKWAY_EVALUATION_OUT"]) / "predictions.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def losses(model: nn.Module, data: Windows, windows: range, text: str, options: argparse.Namespace) -> Iterator[tuple]:
    yield "id", "loss", "tokens", "bytes"
    for window, loss in zip(windows, window_losses(model, data, windows, options.batch), strict=True):
        start = window * data.length // 2 + 1
        yield window, loss, data.length, len(text[start : start + data.length].encode())


def guesses(model: nn.Module, data: Windows, windows: range, options: argparse.Namespace) -> Iterator[tuple]:
    temperature = json.loads(os.environ.get("TRACKWAY_DECODING", "{}")).get("temperature", 1.0)
    yield "task_id", "sample", "correct"
    for window in windows:
        characters, _ = data[window]
        drawn = completions(model, characters[:-COMPLETED], options.samples, temperature)
        for sample, right in enumerate((drawn == characters[-COMPLETED:]).all(1).tolist()):
            yield window, sample, str(right).lower()


def loss_of(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def digest(model: nn.Module) -> str:
    """What two launches are compared by."""
    sha256 = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        sha256.update(name.encode() + tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return sha256.hexdigest()


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, nargs="+", required=True, help="files or folders to read")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=64, help="characters of a window")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TRACKWAY_SEED", "17")))
    parser.add_argument("--workers", type=int, default=0, help="processes that load the data")
    parser.add_argument("--max-characters", type=int, default=400_000)
    parser.add_argument("--evaluate", action="store_true", help="evaluate the checkpoint that `trackway eval run` gives")
    parser.add_argument("--samples", type=int, default=0, help="with --evaluate: guess the end of each window so many times")
    parser.add_argument("--step-millis", type=int, default=0, help="sleep after each step, to watch it")
    return parser.parse_args(arguments)


def main() -> int:
    options = parse_arguments(sys.argv[1:])
    # One thread: the order of additions, and so every bit, is the same on each launch.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    trackway.seed(options.seed)

    text = read_text(options.text)[: options.max_characters]
    characters, vocabulary = encode(text)
    kept_back = len(characters) // 10
    data = Windows(characters[:-kept_back], options.length)
    validation = Windows(characters[-kept_back:], options.length)
    if len(data) < options.batch or len(validation) < 1:
        print(f"error: the text has only {len(characters)} characters: name more with --text", file=sys.stderr)
        return 2

    model = CharacterModel(vocabulary, options.length)
    if options.evaluate:
        evaluate(model, validation, text[-kept_back:], options)
        return 0
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps, eta_min=options.lr / 10)
    loader = DataLoader(data, options.batch, shuffle=True, drop_last=True, num_workers=options.workers)

    run = trackway.attach()
    for name, value in vars(options).items():
        run.param(name, value)
    start = run.resume(model=model, optimizer=optimizer, scheduler=scheduler)
    if start.resumed:
        print(f"resumed from the checkpoint of step {start - 1}", flush=True)

    step = start - 1
    for step, (inputs, targets) in run.batches(loader, start=start, steps=options.steps):
        loss = loss_of(model, inputs, targets)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        run.log(step, loss=loss, grad_norm=norm, lr=scheduler.get_last_lr()[0])
        if step % 50 == 0:
            val_loss = validate(model, validation, options.batch)
            run.log(step, val_loss=val_loss)
            print(f"step {step} loss {loss:.4f} val_loss {val_loss:.4f}", flush=True)
        run.checkpoint(step)
        time.sleep(options.step_millis / 1000)

    run.finish()
    if step < options.steps:
        print(f"stopping at step {step}, as asked", flush=True)
        return EXIT_STOPPED
    print(f"final step={step} weights_sha256={digest(model)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
