"""Makes the vectors of this folder: what untouched scripts of real tools print, byte for byte.

    python make.py FOLDER [NAME …]

One file per tool: pieces of both outputs in the order they were read, each as `[1 or 2, text]`. The tools: transformers 5.23.0, lightning 2.6.6, keras 3.15.1 (JAX),
tqdm 4.70.1, torch 2.15.0, accelerate 1.15.0. Nothing is edited by hand.
"""

import json
import os
import select
import subprocess
import sys
from pathlib import Path

HUGGING_FACE = '''
import time, torch
from transformers import Trainer, TrainingArguments
torch.manual_seed(0)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x=None, labels=None):
        time.sleep(0.03)
        out = self.layer(x).squeeze(-1)
        return {"loss": ((out - labels) ** 2).mean(), "logits": out}
rows = [{"x": torch.randn(4), "labels": torch.randn(())} for _ in range(64)]
arguments = TrainingArguments(
    output_dir="out", num_train_epochs=3, per_device_train_batch_size=8, logging_steps=4, eval_strategy="epoch",
    save_strategy="no", report_to=[], use_cpu=True, seed=0)
trainer = Trainer(model=Model(), args=arguments, train_dataset=rows, eval_dataset=rows[:16])
trainer.train()
'''

LIGHTNING = '''
import torch, lightning
torch.manual_seed(0)
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def loss(self, batch):
        return ((self.layer(batch[0]) - batch[1]) ** 2).mean()
    def training_step(self, batch, _):
        loss = self.loss(batch)
        self.log("train_loss", loss, prog_bar=True)
        return loss
    def validation_step(self, batch, _):
        self.log("val_loss", self.loss(batch), prog_bar=True)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(40, 4), torch.randn(40, 1))
loader = torch.utils.data.DataLoader(data, batch_size=4)
trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
                            callbacks=[lightning.pytorch.callbacks.TQDMProgressBar(refresh_rate=1)])
trainer.fit(Module(), loader, loader)
'''

KERAS = '''
import os
os.environ["KERAS_BACKEND"] = "jax"
import numpy, keras
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse", metrics=["mae"])
x, y = numpy.random.rand(64, 4), numpy.random.rand(64, 1)
model.fit(x, y, epochs=3, batch_size=8, validation_split=0.25, verbose=VERBOSE)
'''

TQDM = '''
import time
from tqdm import tqdm
for epoch in range(1, 4):
    bar = tqdm(range(10), desc=f"Epoch {epoch}/3")
    for batch in bar:
        time.sleep(0.02)
        bar.set_postfix(loss=1 / (1 + batch + 10 * (epoch - 1)), lr=1e-3, grad_norm=float("nan") if batch == 9 else 0.5)
    for batch in tqdm(range(3), desc="Validation"):
        time.sleep(0.02)
    tqdm.write(f"epoch {epoch}: val_loss={0.5 / epoch:.4f} val_acc={100 - epoch:.1f}%")
'''

# As nanoGPT's train.py prints (MIT licence), whose loop is copied here in its printing alone.
PLAIN = '''
import logging, math, sys
logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(levelname)s] %(name)s: %(message)s")
print("listening on port=8080 pid=123")
print("number of parameters: 0.12M")
for it in range(0, 30, 10):
    print(f"step {it}: train loss {4.2 - it / 100:.4f}, val loss {4.3 - it / 100:.4f}")
    print(f"iter {it}: loss {4.2 - it / 100:.4f}, time {23.4:.2f}ms, mfu {-100.0:.2f}%")
for step in range(100, 103):
    logging.info("step=%d loss=%.4f lr=%.2e tokens_per_second=%.1f", step, 3.0 - step / 100, 1e-4, 1234.5)
print("Epoch [1/5], Step [100/600], Loss: 0.3527")
print("Train Epoch: 2 [640/60000 (1%)]\\tLoss: 1.5123")
print("| epoch 3 | 200/2983 batches | lr 5.00 | ms/batch 12.34 | loss 6.72 | ppl 828.95")
print("\\nTest set: Average loss: 0.0512, Accuracy: 9834/10000 (98%)\\n")
print({"step": 200, "loss": float("nan"), "note": "diverged"})
print("Epoch: 4  Loss: inf")
print("done in 12.3s, peak memory 1024 MB")
'''

TOOLS = {
    "hugging_face": HUGGING_FACE,
    "lightning": LIGHTNING,
    "keras": KERAS.replace("VERBOSE", "1"),
    "keras_lines": KERAS.replace("VERBOSE", "2"),
    "tqdm": TQDM,
    "plain": PLAIN,
}


def printed(script):
    """The pieces of both outputs in the order they came: 1 is standard output, 2 standard error."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-W", "ignore", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/tmp")
    pieces, open_pipes = [], {2: process.stderr, 1: process.stdout}
    while open_pipes:
        ready = select.select(list(open_pipes.values()), [], [])[0]
        for number, pipe in list(open_pipes.items()):
            if pipe in ready:
                piece = os.read(pipe.fileno(), 65536)
                if not piece:
                    del open_pipes[number]
                elif pieces and pieces[-1][0] == number:
                    pieces[-1][1] += piece
                else:
                    pieces.append([number, piece])
    assert process.wait() == 0, script
    return pieces


def main():
    folder = Path(sys.argv[1])
    for name, script in TOOLS.items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        pieces = printed(script)
        with open(folder / f"{name}.jsonl", "w") as file:
            for number, piece in pieces:
                file.write(json.dumps([number, piece.decode()], ensure_ascii=False) + "\n")
        print(name, len(pieces), "pieces")


if __name__ == "__main__":
    main()
