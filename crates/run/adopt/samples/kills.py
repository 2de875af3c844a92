"""Kills trainings at random times under `trackway run`, and compares what became of them with the same training left alone.

    python kills.py TRACKWAY KILLS [NAME ...]

Nothing torn may be resumed from, the receipt must say what was resumed from, and the weights at the end must be those of a training that was never killed.
A run that ends as a crash loop (three kills in a row before anything new was committed) is resumed as a person would, and counted.
"""

import importlib.util
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import typing

TRAIN = pathlib.Path(__file__).with_name("train.py").resolve()
ADOPT = {
    "torch_file": "out/ckpt.pt", "transformers": "out/checkpoint-*", "transformers_ddp": "out/checkpoint-*",
    "lightning": "out/model-*.ckpt", "accelerate": "out/step_*", "torch_dcp": "out/step-*",
    "torch_dcp_resharded": "out/step-*", "deepspeed": "out/global_step*", "keras": "out/backup",
    "orbax": "out/[0-9]*", "xgboost": "out/model_*.ubj", "lightgbm": "out/model_*.txt", "catboost": "out/model.cbsnapshot",
    "sklearn": "out/model.joblib",
}
# So many of a training's own checkpoints are shown to be its own, by an ordinary user too.
SHARE_MIN = 0.99
CRASH_LOOP = "(rule `budget.crash_loop`)"
# Ends for which nothing was killed. (A launcher of ranks whose rank was killed ends with a code.)
OF_THE_SCRIPT = ("code_error", "checkpoint_error", "data_error", "evaluator_error")
# Frameworks whose own resume is not exact, without Trackway too.
INEXACT = {
    "lightning": "differ: Lightning does not restore its place in the loader within an epoch",
    "torch_dcp_resharded": "differ: sums are rounded in another order with another number of ranks",
}
# Not among the frameworks of the Python tests: skipped where it is not installed.
OPTIONAL = ("deepspeed",)
OF_TWO_RANKS = ("torch_dcp", "transformers_ddp", "deepspeed")
# From the kills that are left: 2 ranks, then 1, then 2, then 3, and so on.
RANKS = "$(( 2 + left % 2 * (left - 2) ))"


def command(name):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    if name in OF_TWO_RANKS:
        return [*launcher, "--nproc-per-node", "2", str(TRAIN), name]
    if name == "torch_dcp_resharded":
        run = f"exec {shlex.join(launcher)} --nproc-per-node {RANKS} {shlex.quote(str(TRAIN))} {name}"
        return ["sh", "-c", f"left=$(( $(cat kills) % 4 )); {run}"]
    return [sys.executable, str(TRAIN), name]


def last_loss_in(text):
    return re.findall(r"loss (\S+)", text)[-1]


def weights_in(text):
    found = re.findall(r"^weights (\w+)", text, re.M)
    return found[-1] if found else None


# A kill comes up to twelve steps after the start, and at least five of them are not trained again.
STEPS_PER_KILL = 9


def left_alone(name, environment):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "kills").write_text("0")
        ended = subprocess.run(command(name), cwd=folder, capture_output=True, text=True, env=environment)
        assert ended.returncode == 0, ended.stderr[-2000:]
        return weights_in(ended.stdout), last_loss_in(ended.stdout)


class Killed(typing.NamedTuple):
    weights: str | None
    attempts: list
    events: list
    ended: subprocess.CompletedProcess
    kills: int
    crash_loops: int

    def count(self, kind):
        return sum(event["kind"] == kind for event in self.events)


def killed(trackway, name, kills, environment):
    """A training that is killed so often, and what became of it."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "kills").write_text(str(kills))
        retries = f"{{ attempts = {kills + 5}, backoff = \"0s..0s\" }}"
        reasons = ("unknown", "infrastructure", "preempted", "node_failure")
        (folder / "run.toml").write_text(
            f"[run]\nname = \"{name}\"\ncommand = {json.dumps(command(name))}\n[checkpoint]\nadopt = [\"{ADOPT[name]}\"]\n[retry]\n"
            + "".join(f"{reason} = {retries}\n" for reason in reasons)
        )
        environment = environment | {"TRACKWAY_HOME": str(folder / "home")}

        def run(*arguments):
            return subprocess.run([trackway, *arguments], cwd=folder, capture_output=True, text=True, env=environment)

        ended = run("run", "run.toml")
        crash_loops = 0
        while CRASH_LOOP in ended.stderr and crash_loops < kills:
            crash_loops += 1
            ended = run("resume", "last")
        left = int((folder / "kills").read_text())
        attempts = json.loads(run("sql", "--json", ATTEMPTS).stdout)
        events = json.loads(run("sql", "--json", EVENTS).stdout)
        return Killed(weights_in(ended.stdout), attempts, events, ended, kills - left, crash_loops)


ATTEMPTS = """select attempt_number, resumed_from_step, resumed_from_manifest_sha256, first_step, last_step, last_committed_step, termination_reason, exit_code, signal
from training_attempts order by attempt_number"""
EVENTS = "select kind, step, message from events where kind like 'checkpoint_%' order by at"


def faults_of(attempts, events):
    """What the receipts say that cannot be right."""
    for attempt, before in zip(attempts[1:], attempts, strict=False):
        if attempt["termination_reason"] in OF_THE_SCRIPT:
            yield f"attempt {attempt['attempt_number']} crashed: {attempt['termination_reason']}"
        committed = max((one["last_committed_step"] or 0 for one in attempts if one["attempt_number"] <= before["attempt_number"]), default=0)
        if (attempt["resumed_from_step"] or 0) != committed and attempt["first_step"] is not None:
            yield f"attempt {attempt['attempt_number']} resumed from {attempt['resumed_from_step']}, committed was {committed}"
        if attempt["resumed_from_step"] and attempt["first_step"] and attempt["first_step"] != attempt["resumed_from_step"] + 1:
            yield f"attempt {attempt['attempt_number']} began at {attempt['first_step']} after {attempt['resumed_from_step']}"
    for event in events:
        if event["kind"] == "checkpoint_other_resume":
            yield event["message"]


def main():
    trackway, kills, chosen = str(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2]), sys.argv[3:] or list(ADOPT)
    environment = os.environ | {"TRAIN_STEPS": str(20 + kills * STEPS_PER_KILL)}
    wrong = committed = candidates = 0
    for name in chosen:
        if name in OPTIONAL and importlib.util.find_spec(name) is None:
            print(f"{name}: skipped, it is not installed", flush=True)
            continue
        expected, expected_loss = left_alone(name, environment)
        run = killed(trackway, name, kills, environment)
        faults = list(faults_of(run.attempts, run.events))
        if run.weights is None or run.kills < kills:
            faults.append(f"it did not end, or before all kills: {run.ended.stderr[-600:]}")
        made = sum(attempt["resumed_from_step"] is not None for attempt in run.attempts)
        exact = "equal" if run.weights == expected else INEXACT.get(name, "DIFFERENT")
        if run.weights != expected:
            exact += f" (last loss {last_loss_in(run.ended.stdout)}, left alone {expected_loss})"
        print(
            f"{name}: {run.kills} kills, {len(run.attempts)} attempts, {made} resumed, "
            f"{run.count('checkpoint_adopted')} committed, {run.count('checkpoint_candidate')} not shown to be its own, {run.count('checkpoint_not_adopted')} refused as not whole, "
            f"{run.count('checkpoint_moved_aside')} moved aside, {run.crash_loops} crash loops, {len(faults)} faults, weights {exact}",
            flush=True,
        )
        for fault in faults:
            print("  WRONG:", fault, flush=True)
        wrong += len(faults)
        committed, candidates = committed + run.count("checkpoint_adopted"), candidates + run.count("checkpoint_candidate")
    share = committed / max(committed + candidates, 1)
    print(f"{committed} of {committed + candidates} of its own checkpoints were committed by user {os.getuid()}: {share:.1%}")
    if share < SHARE_MIN:
        print(f"  WRONG: fewer than {SHARE_MIN:.0%}")
    sys.exit(1 if wrong or share < SHARE_MIN else 0)


if __name__ == "__main__":
    main()
