#!/usr/bin/env python3
"""Measures how long a killed training needs until its script starts again, and until its first new step: alone, started again at
once by a loop, and under `trackway run`, which puts its checkpoints in order first and writes a receipt.

Usage: bench/checkpoint/recovery.py --ours PATH/trackway --python PATH/TO/PYTHON [--rounds 5] [NAME ...]

`PATH/TO/PYTHON` has the frameworks of the names. The trainings are those of `make test-adopted`, each killed once, after a
step between two checkpoints. Both take turns. Printed are medians and the spread, the difference within a round,
and how many steps were trained again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from peers import spread

TRAIN = Path(__file__).resolve().parents[2] / "crates/run/adopt/samples/train.py"
ADOPT = {"transformers": "out/checkpoint-*", "lightning": "out/model-*.ckpt", "accelerate": "out/step_*", "torch_file": "out/ckpt.pt", "torch_dcp": "out/step-*"}
KILLED_AFTER_STEP = 23


def command(python: Path, name: str) -> list[str]:
    if name != "torch_dcp":
        return [str(python), str(TRAIN), name]
    # Its own restarts are not used: with PyTorch 2.15 and gloo they hang at times in `init_process_group`.
    ranks = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--monitor-interval", "0.1", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    return [str(python), *ranks, str(TRAIN), name]


def alone(python: Path, name: str, environment: dict, folder: Path) -> None:
    for _ in range(3):
        if subprocess.run(command(python, name), cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return


def under_trackway(ours: Path, python: Path, name: str, environment: dict, folder: Path) -> None:
    at_once = "{ attempts = 3, backoff = \"0s..0s\" }"
    retry = "".join(f"{reason} = {at_once}\n" for reason in ("unknown", "infrastructure", "preempted", "node_failure", "code_error"))
    job = f"[run]\nname = \"{name}\"\ncommand = {json.dumps(command(python, name))}\n[checkpoint]\nadopt = [\"{ADOPT[name]}\"]\n[retry]\n{retry}"
    (folder / "run.toml").write_text(job)
    subprocess.run([ours.resolve(), "run", "run.toml"], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measured(start, name: str, arguments: argparse.Namespace, *of_start) -> dict:
    with tempfile.TemporaryDirectory(prefix="trackway-bench-", dir=arguments.folder) as made:
        folder = Path(made)
        (folder / "kills").write_text("1")
        stamps = folder / "stamps"
        added = {"TRAIN_STAMPS": str(stamps), "TRAIN_KILL_AFTER": str(KILLED_AFTER_STEP), "TRACKWAY_HOME": str(folder / "home")}
        start(*of_start, arguments.python, name, os.environ | added, folder)
        return read(stamps.read_text())


def read(text: str) -> dict:
    """The seconds from the kill to the start of the script and to the first step after it, and the steps that were trained again."""
    lines = [(float(at), what) for at, what in (line.split() for line in text.splitlines())]
    killed = next(number for number, (_, what) in enumerate(lines) if what == "killed")
    started, step = next(at for at, what in lines[killed:] if what == "started"), next(line for line in lines[killed:] if line[1].isdigit())
    at, again = lines[killed][0], int(lines[killed - 1][1]) - int(step[1]) + 1
    return {"start": started - at, "step": step[0] - at, "again": again, "ended": lines[-1][1] == "60"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", type=Path, required=True, help="the binary, built for release")
    parser.add_argument("--python", type=lambda path: Path(path).absolute(), default=Path(sys.executable))
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; else the one for temporary files")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("names", nargs="*", default=["transformers", "lightning", "torch_dcp"])
    arguments = parser.parse_args()
    print(f"killed after step {KILLED_AFTER_STEP}; seconds to the start of the script and to its first new step, medians [least .. most]")
    for name in arguments.names:
        rounds = [
            (measured(alone, name, arguments), measured(under_trackway, name, arguments, arguments.ours)) for _ in range(arguments.rounds)
        ]
        for who, index in (("alone", 0), ("trackway", 1)):
            again = [one[index]["again"] for one in rounds]
            ended = sum(one[index]["ended"] for one in rounds)
            seconds = [spread([one[index][figure] for one in rounds]) for figure in ("start", "step")]
            print(f"  {name + ', ' + who:<28}{'   '.join(seconds)}   steps trained again {min(again)}..{max(again)}, ended {ended} of {len(rounds)}")
        differences = [spread([ours[figure] - theirs[figure] for theirs, ours in rounds]) for figure in ("start", "step")]
        print(f"  {name + ', difference':<28}{'   '.join(differences)}", flush=True)


if __name__ == "__main__":
    main()
