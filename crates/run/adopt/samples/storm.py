"""Trainings in one working folder, killed and resumed at random: nobody's file is touched, and every registered model is the run's own.

    python storm.py TRACKWAY [SEED] [PAIRS]

Pairs of plain loops, with and without Trackway, of untouched Trainers where torch and transformers are installed, and a sweep. Every training keeps the hash of
each file beside its own log; at the end each file must be there with that hash, or have been moved by the run that wrote it. The newest checkpoint of each run is
registered and exported: its bytes must be in the log of that run, and in no other. A first run works alone: every save of it must be committed. Of the others the
share is printed: what two save within the same few milliseconds is not known to be of either.
"""

import collections
import hashlib
import importlib.util
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

# Alone, what the attempt wrote always pays for its own files: of so few saves not one may be missing.
COMMITTED_ALONE = 0.99
LOOP = r'''
import hashlib, os, pathlib, pickle, sys, time
folder, steps, seconds, size = pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
folder.mkdir(parents=True, exist_ok=True)
log = pathlib.Path("logs") / (sys.argv[1].replace("/", "-") + ".log")
saved = sorted(folder.glob("ckpt-*.pkl"), key=lambda path: int(path.stem[5:]))
step = 0
while saved and not step:
    try: step = pickle.loads(saved.pop().read_bytes())["step"]
    except Exception: pass
print("starts after", step, flush=True)
while step < steps:
    step += 1
    time.sleep(seconds)
    print("step", step, "loss", 1 / step, flush=True)
    if step % 10 == 0:
        path = folder / f"ckpt-{step}.pkl"
        state = pickle.dumps({"step": step, "model": f"weights of {folder}", "pad": os.urandom(size), "optimizer": {}})
        with log.open("a") as lines: print("begin", path, file=lines)
        (folder / ".part").write_bytes(state)
        (folder / ".part").rename(path)
        with log.open("a") as lines: print(hashlib.sha256(state).hexdigest(), path, file=lines)
'''
TRAINER = r'''
import hashlib, pathlib, sys
import torch, transformers
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.layer = torch.nn.Linear(4, 1)
    def forward(self, x, labels):
        out = self.layer(x); return {"loss": ((out - labels) ** 2).mean(), "out": out}
class Watch(transformers.TrainerCallback):
    def on_step_end(self, *_, **__):
        import time; time.sleep(float(sys.argv[3]))
    def on_save(self, _, state, *__, **___):
        path = out / f"checkpoint-{state.global_step}" / "model.safetensors"
        with log.open("a") as lines: print(hashlib.sha256(path.read_bytes()).hexdigest(), path, file=lines)
# Another one in each training and each attempt: no two have the same weights.
torch.seed()
out = pathlib.Path(sys.argv[1])
log = pathlib.Path("logs") / (sys.argv[1] + ".log")
data = [{"x": x, "labels": x.sum(0, keepdim=True)} for x in torch.randn(64, 4)]
args = transformers.TrainingArguments(str(out), max_steps=int(sys.argv[2]), save_steps=10, logging_steps=1, report_to=[], use_cpu=True, per_device_train_batch_size=4, learning_rate=0.1, disable_tqdm=True)
trainer = transformers.Trainer(Model(), args, train_dataset=data, callbacks=[Watch()])
trainer.train(resume_from_checkpoint=any(out.glob("checkpoint-*/trainer_state.json")) or None)
'''


def main():
    trackway, seed = str(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    # A few pairs are a test for every change.
    steps = (60, 120) if pairs > 3 else (40, 60)
    chance = random.Random(seed)
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "logs").mkdir()
        (folder / "t.py").write_text(LOOP)
        (folder / "trainer.py").write_text(TRAINER)
        has_trainer = importlib.util.find_spec("torch") and importlib.util.find_spec("transformers")
        environment = os.environ | {"TRACKWAY_HOME": str(folder / "home")}

        def trackway_(*arguments, **options):
            return subprocess.Popen([trackway, *arguments], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)

        def answer(*arguments):
            return json.loads(subprocess.run([trackway, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout)

        begun, plain, trainers = {}, [], 0
        begun["alone"] = trackway_("run", "--name", "alone", "--", sys.executable, "t.py", "out-alone", "300", "0.02", "1000")
        begun["alone"].wait(300)
        for pair in range(pairs):
            for side in "ab":
                run = f"p{pair}{side}"
                script = "trainer.py" if has_trainer and pair % 3 == 2 else "t.py"
                trainers += script == "trainer.py"
                arguments = [sys.executable, script, f"out-{run}", str(chance.randint(*steps)), str(round(chance.uniform(0.03, 0.1), 3)), str(chance.choice((100, 20_000, 3_000_000)))]
                if pair % 4 == 3 and side == "b":
                    plain.append((run, subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL)))
                elif pair % 4 == 1:
                    file = folder / f"{run}.toml"
                    file.write_text(f'[run]\nname = "{run}"\ncommand = {json.dumps(arguments)}\n[checkpoint]\nadopt = ["out-{run}/*"]\n')
                    begun[run] = trackway_("run", file.name)
                else:
                    begun[run] = trackway_("run", "--name", run, "--", *arguments)
        sweep = folder / "sweep.toml"
        sweep.write_text(f'[run]\nname = "sweep"\ncommand = {json.dumps([sys.executable, "t.py", "sweep/x", "80", "0.05", "100"])}\n[checkpoint]\nadopt = ["sweep/*/ckpt-*.pkl"]\n')
        first = trackway_("run", "sweep.toml")
        time.sleep(1.5)
        second = trackway_("run", "sweep.toml")
        # One of the two is refused; on a busy machine the one that was started first may come second.
        while first.poll() is None and second.poll() is None and not (folder / "sweep/x/ckpt-10.pkl").exists():
            time.sleep(0.1)
        refused, begun["sweep"] = (first, second) if first.poll() == 3 else (second, first)
        refusal = refused.wait(60)
        kills = collections.Counter()
        until = time.monotonic() + 600
        while (live := [run for run, process in begun.items() if process.poll() is None]) and time.monotonic() < until:
            time.sleep(chance.uniform(0.3, 1.0))
            run = chance.choice(live)
            if kills[run] < 2 and chance.random() < 0.4:
                # The script itself, then a resume as a person would.
                for process in pathlib.Path("/proc").glob("[0-9]*"):
                    try:
                        words = (process / "cmdline").read_bytes().split(b"\0")
                        if os.fsencode(f"out-{run}") in words and words[1:2] and words[1].endswith(b".py"):
                            os.kill(int(process.name), signal.SIGKILL)
                            kills[run] += 1
                    except (OSError, ValueError):
                        pass
            for run, process in list(begun.items()):
                if process.poll() == 4:
                    begun[run] = trackway_("resume", run)
        for run, process in begun.items():
            process.wait(120)
            if process.returncode != 0:
                wrong.append(f"{run} ended with {process.returncode}: {process.stderr.read()[-500:]}")
        # On a busy machine one may have ended before the other began.
        times = answer("sql", "--json", "select a.started_at, a.ended_at from training_attempts a join runs r using (run_id) where r.name = 'sweep' order by a.started_at")
        if refusal != 3 and any(later["started_at"] < earlier["ended_at"] for earlier, later in zip(times, times[1:])):
            wrong.append(f"neither run of the sweep was refused, and both ran at once: {times}")
        for run, process in plain:
            if process.wait() != 0:
                wrong.append(f"{run}, without Trackway, failed")
        moved = {json.loads(event["fields_json"])["path"]: event["name"] for event in answer("sql", "--json", "select r.name, e.fields_json from events e join runs r using (run_id) where e.kind = 'checkpoint_moved_aside'")}
        files, written, saved = 0, collections.defaultdict(set), set()
        for log in (folder / "logs").glob("*.log"):
            last = {}
            for line in log.read_text().splitlines():
                what, path = line.split(" ", 1)
                last[path] = what
                written[log.stem.removeprefix("out-").removesuffix("-x")].add(what)
            for path, what in last.items():
                files += 1
                owner = log.stem.removeprefix("out-").removesuffix("-x")
                at = folder / path
                if what == "begin":
                    continue
                saved.add((owner, path.removesuffix("/model.safetensors")))
                if not at.exists():
                    if moved.get(path) != owner:
                        wrong.append(f"{path} of {owner} is gone; moved by {moved.get(path)}")
                elif hashlib.sha256(at.read_bytes()).hexdigest() != what:
                    wrong.append(f"{path} of {owner} is not what was written")
        adopted = answer("sql", "--json", "select r.name, e.fields_json from events e join runs r using (run_id) where e.kind = 'checkpoint_adopted'")
        shown = collections.Counter()
        for event in adopted:
            fields = json.loads(event["fields_json"])
            shown[fields.get("shown_by")] += 1
            if not fields["path"].startswith((f"out-{event['name']}/", "sweep/")):
                wrong.append(f"{event['name']} committed {fields['path']}")
        committed = {(event["name"], json.loads(event["fields_json"])["path"]) for event in adopted}

        def share(is_counted):
            own = [one for one in saved if one[0] in begun and is_counted(one[0])]
            return sum(one in committed for one in own) / max(len(own), 1), len(own)

        (alone, of_alone), (beside, of_beside) = share(lambda run: run == "alone"), share(lambda run: run != "alone")
        if alone < COMMITTED_ALONE or not of_alone:
            wrong.append(f"of {of_alone} saves of the run that was alone {alone:.1%} were committed")
        registered = 0
        for run in begun if not wrong else []:
            exported = folder / "exported" / run
            if not any(event["name"] == run for event in adopted):
                continue
            for words in (("register", f"m-{run}", "--run", run), ("export", f"m-{run}", "1", "--out", str(exported))):
                ended = subprocess.run([trackway, "registry", *words], cwd=folder, env=environment, capture_output=True, text=True)
                if ended.returncode:
                    wrong.append(f"registry {words}: {ended.stderr[-300:]}")
            for path in [*exported.glob("*.pkl"), *exported.glob("model.safetensors")]:
                registered += 1
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                if [owner for owner, digests in written.items() if digest in digests] != [run]:
                    wrong.append(f"version 1 of m-{run} is not of that run: {path.name}")
        candidates = answer("sql", "--json", "select count(*) as n from events where kind = 'checkpoint_candidate'")[0]["n"]
        print(f"seed {seed}: {len(begun)} runs ({trainers} Trainers), {registered} registered, {len(plain)} without Trackway, {sum(kills.values())} kills, {files} files, {len(adopted)} committed ({dict(shown)}), {candidates} candidates, {len(wrong)} faults; of the own saves committed: {alone:.1%} of {of_alone} alone, {beside:.1%} of {of_beside} in company")
    for fault in wrong[:40]:
        print("  WRONG:", fault)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
