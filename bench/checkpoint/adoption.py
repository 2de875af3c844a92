#!/usr/bin/env python3
"""Measures what committing a script's own checkpoints costs its loop: the same training under `trackway run`, with `adopt`
and without, in turns.

Usage: bench/checkpoint/adoption.py --ours PATH/trackway --python PATH/TO/PYTHON [--mebibytes 256] [--rounds 5]

`PATH/TO/PYTHON` has torch. The script computes on every core and saves its state with `torch.save` to one name, again and
again. Printed are its seconds within the loop, medians and the spread, and the ratio within a round (aim: 1.01).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from peers import spread

TRAINING = """
import sys, time, torch
size = int(sys.argv[1]) << 20
state = {"weights": torch.rand(size // 4), "step": 0}
matrix = torch.rand(1024, 1024)
started = time.perf_counter()
for step in range(1, 601):
    matrix = torch.tanh(matrix @ matrix)
    state["step"] = step
    if step % 100 == 0:
        torch.save(state, "ckpt.pt")
print("loop", time.perf_counter() - started)
# The last one is committed by the end of the attempt: it is not the loop that waits for it.
"""


def loop_seconds(arguments: argparse.Namespace, adopt: list[str]) -> tuple[float, int]:
    with tempfile.TemporaryDirectory(prefix="trackway-bench-", dir=arguments.folder) as made:
        folder = Path(made)
        (folder / "train.py").write_text(TRAINING)
        command = [str(arguments.python), "train.py", str(arguments.mebibytes)]
        (folder / "run.toml").write_text(f"[run]\nname = \"adoption\"\ncommand = {json.dumps(command)}\n[checkpoint]\nadopt = {json.dumps(adopt)}\n")
        environment = os.environ | {"TRACKWAY_HOME": str(folder / "home")}
        ended = subprocess.run([arguments.ours.resolve(), "run", "run.toml"], cwd=folder, env=environment, capture_output=True, text=True)
        if ended.returncode != 0:
            sys.exit(ended.stdout + ended.stderr)
        counted = [arguments.ours.resolve(), "sql", "--json", "select count(*) as committed from events where kind = 'checkpoint_adopted'"]
        committed = json.loads(subprocess.run(counted, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout)
        line = next(line for line in ended.stdout.splitlines() if line.startswith("loop "))
        return float(line.split()[1]), committed[0]["committed"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", type=Path, required=True, help="the binary, built for release")
    parser.add_argument("--python", type=lambda path: Path(path).absolute(), default=Path(sys.executable))
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; else the one for temporary files")
    parser.add_argument("--mebibytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rounds = [(loop_seconds(arguments, []), loop_seconds(arguments, ["ckpt.pt"])) for _ in range(arguments.rounds)]
    print(f"6 saves of {arguments.mebibytes} MiB; seconds of the loop, medians [least .. most]")
    print(f"  without adopt   {spread([without[0] for without, _ in rounds])}")
    print(f"  with adopt      {spread([adopted[0] for _, adopted in rounds])}   {min(a[1] for _, a in rounds)}..{max(a[1] for _, a in rounds)} committed")
    print(f"  ratio           {spread([adopted[0] / without[0] for without, adopted in rounds])}")


if __name__ == "__main__":
    main()
