"""How a training is written: a plain loop, a Trainer, a LightningModule, a booster, two ranks under torchrun.

Each is a script that does not know Trackway. It reads `c.json` and `data.csv`, trains steps 1 to `c["steps"]`, saves each 20 steps below `out`, and
continues from what it finds there. A mechanism puts its lines at `#TOP`, before anything else, at `#HERE`, where the loss of a step is made, and at
`#EVALUATE`.
"""

import dataclasses
import textwrap

COMMON = """\
#TOP
import json, math, os, pickle, random, signal, sys, time
c = json.load(open("c.json"))
rows = [line.split(",") for line in open("data.csv").read().split()[1:]]
random.seed(1)
os.makedirs("out", exist_ok=True)
rank = int(os.environ.get("RANK", 0))
def evaluate(step):
    #EVALUATE
    return 0.0
def loss_of(step):
    batch = rows[step % len(rows)]
    loss = c["scale"] / (1 + step / 20) + 0.01 * random.random() + 0 * float(batch[0])
    #HERE
    return loss
"""

LOOP = """\
w, start = [0.0, 0.0], 0
found = sorted((int(name[5:-4]), name) for name in os.listdir("out"))
if found:
    state = pickle.load(open(f"out/{found[-1][1]}", "rb"))
    w, start = state["model"], state["step"]
for step in range(start + 1, c["steps"] + 1):
    loss = loss_of(step)
    print(f"step {step} loss {loss:.5f}", flush=True)
    time.sleep(c.get("seconds", 0.006))
    if step % 20 == 0:
        pickle.dump({"step": step, "model": [step, 1.0], "optimizer": {"m": [step]}}, open("out/ckpt-%d.pkl" % step, "wb"))
        time.sleep(0.12)
"""

# The loss that is wanted, with a gradient that trains.
TENSOR = """\
def with_value(loss, value):
    return loss + (value - loss.detach()) if math.isfinite(value) else loss * value
"""

TRAINER = TENSOR + """\
import torch, transformers
from transformers.trainer_utils import get_last_checkpoint
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x, labels):
        out = self.layer(x)
        return {"loss": with_value(((out - labels) ** 2).mean(), loss_of(trainer.state.global_step + 1)), "out": out}
class Pause(transformers.TrainerCallback):
    def on_step_end(self, *_, **__):
        time.sleep(c.get("seconds", 0.006))
    def on_save(self, *_, **__):
        time.sleep(0.12)
torch.manual_seed(1)
data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(64)]
args = transformers.TrainingArguments("out", max_steps=c["steps"], save_steps=20, logging_steps=1, report_to=[], use_cpu=True, per_device_train_batch_size=4)
trainer = transformers.Trainer(Model(), args, train_dataset=data, callbacks=[Pause()])
trainer.train(resume_from_checkpoint=get_last_checkpoint("out"))
"""

LIGHTNING = TENSOR + """\
import glob, torch, pytorch_lightning as lightning
from pytorch_lightning.callbacks import ModelCheckpoint, TQDMProgressBar
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, batch_index):
        x, y = batch
        loss = with_value(((self.layer(x) - y) ** 2).mean(), loss_of(self.global_step + 1))
        self.log("train_loss", loss, prog_bar=True)
        time.sleep(c.get("seconds", 0.006))
        return loss
    def on_save_checkpoint(self, checkpoint):
        time.sleep(0.12)
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
torch.manual_seed(1)
data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
saves = ModelCheckpoint("out", every_n_train_steps=20, save_top_k=-1)
trainer = lightning.Trainer(max_steps=c["steps"], accelerator="cpu", logger=False, callbacks=[saves, TQDMProgressBar()], log_every_n_steps=1)
found = sorted(glob.glob("out/*.ckpt"), key=os.path.getmtime)
trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=4), ckpt_path=found[-1] if found else None)
"""

BOOSTER = """\
import numpy, xgboost
random_rows = numpy.random.default_rng(1)
table = xgboost.DMatrix(random_rows.normal(size=(200, 4)), label=random_rows.normal(size=200))
found = sorted((int(name[5:-4]), name) for name in os.listdir("out"))
before = found[-1][0] if found else 0
class Save(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, log):
        time.sleep(c.get("seconds", 0.006))
        if (epoch + 1) % 20 == 0:
            model.save_model(f"out/ckpt-{epoch + 1}.ubj")
            time.sleep(0.12)
        return False
rounds = iter(range(before + 1, c["steps"] + 1))
xgboost.train(
    {"max_depth": 2, "nthread": 1, "disable_default_eval_metric": True}, table, c["steps"] - before, evals=[(table, "train")],
    custom_metric=lambda scores, table: ("loss", loss_of(next(rounds))), callbacks=[Save()],
    xgb_model=f"out/{found[-1][1]}" if found else None,
)
"""

RANKS = """\
import torch
torch.distributed.init_process_group("gloo")
torch.manual_seed(1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
found = sorted((int(name[5:-3]), name) for name in os.listdir("out"))
start = 0
if found:
    state = torch.load(f"out/{found[-1][1]}")
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    start = state["step"]
for step in range(start + 1, c["steps"] + 1):
    x = torch.randn(4, 4)
    loss = (model(x) ** 2).mean()
    value = loss_of(step)
    if not math.isfinite(value):
        loss = loss * value
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0:
        print(f"step {step} loss {value:.5f}", flush=True)
    time.sleep(c.get("seconds", 0.006))
    if step % 20 == 0:
        if rank == 0:
            torch.save({"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, f"out/ckpt-{step}.pt")
        time.sleep(0.12)
torch.distributed.destroy_process_group()
"""


@dataclasses.dataclass(frozen=True)
class Kind:
    """`start_seconds`: at most what comes before its first step; `differs`: fields of a truth that are other here, by mechanism."""

    name: str
    body: str
    command: tuple
    adopt: str
    modules: tuple = ()
    start_seconds: int = 0
    differs: dict = dataclasses.field(default_factory=dict)

    def truth_of(self, one):
        return dataclasses.replace(one.truth, **self.differs.get(one.name, {}))

    def script_of(self, one):
        step = one.step
        if one.one_rank and self.name == "ranks":
            step = "if rank == 1:\n" + textwrap.indent(step, "    ")
        return self.script(one.top, step, one.evaluation)

    def script(self, top="", step="pass", evaluation="pass"):
        text = COMMON.replace("#TOP", top)
        for mark, lines in (("#HERE", step), ("#EVALUATE", evaluation)):
            text = text.replace(mark, textwrap.indent(textwrap.dedent(lines).strip("\n"), "    ").lstrip(" "))
        return text + self.body

    def run_file(self, more=""):
        command = ", ".join(f'"{word}"' for word in self.command)
        return RUN_FILE.replace("COMMAND", command).replace("ADOPT", self.adopt) + more.replace("TIMEOUT", str(self.start_seconds + 4))


RUN_FILE = """\
[run]
name = "r"
command = [COMMAND]
[data.train]
path = "data.csv"
[checkpoint]
adopt = ["ADOPT"]
[retry]
infrastructure = { attempts = 0 }
unknown = { attempts = 0 }
timeout = { attempts = 0 }
hang = { attempts = 0 }
checkpoint_error = { attempts = 0 }
code_error = { attempts = 0 }
"""

KINDS = [
    Kind("loop", LOOP, ("python3", "t.py", "c.json"), "out/ckpt-*.pkl"),
    Kind("trainer", TRAINER, ("python3", "t.py", "c.json"), "out/checkpoint-*", ("torch", "transformers", "accelerate"), 10),
    Kind("lightning", LIGHTNING, ("python3", "t.py", "c.json"), "out/*.ckpt", ("torch", "pytorch_lightning"), 10,
         # Its trainer ends after the step in which it is asked to.
         differs={"sigterm": {"lost": (10, 10)}}),
    Kind("booster", BOOSTER, ("python3", "t.py", "c.json"), "out/ckpt-*.ubj", ("numpy", "xgboost"), 5),
    Kind("ranks", RANKS, ("torchrun", "--standalone", "--nproc-per-node=2", "t.py", "c.json"), "out/ckpt-*.pt", ("torch",), 10),
]
