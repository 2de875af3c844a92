#!/usr/bin/env python3
"""What the recorder, the shim and the detectors cost a training step of about 10 ms: the same loop in turn with Trackway and alone.

Usage: bench/record/step_time.py --binary PATH/trackway --python PATH [--rounds 10] [--steps 400]

PATH is an interpreter that has numpy and trackway. A step is a fixed number of matrix products; with Trackway it logs ten metrics. Printed are
the medians over all steps of a round, and the fraction by which rounds with Trackway are longer, with the interval of paired rounds.
"""

import argparse
import os
import statistics
import subprocess
import tempfile

LOOP = """
import os, sys, time
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
import trackway
run = trackway.attach()
a = np.random.default_rng(1).normal(size=(256, 256))
def step():
    b = a
    for _ in range(REPEATS):
        b = b @ a
        b /= np.abs(b).max()
    return float(b[0, 0])
REPEATS = 1
began = time.perf_counter(); [step() for _ in range(50)]
REPEATS = max(1, round(0.01 / ((time.perf_counter() - began) / 50))) if len(sys.argv) < 3 else int(sys.argv[2])
taken = []
for number in range(1, int(sys.argv[1]) + 1):
    began = time.perf_counter()
    value = step()
    run.log(number, loss=value, a=1.0, b=2.0, c=3.0, d=4.0, e=5.0, f=6.0, g=7.0, h=8.0, i=number / 2)
    taken.append(time.perf_counter() - began)
open(os.environ["TAKEN"], "w").write(f"{REPEATS} " + " ".join(map(str, taken)))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    shares, alone_all, with_all = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        taken = os.path.join(folder, "taken")
        environment = {**os.environ, "TAKEN": taken, "TRACKWAY_HOME": os.path.join(folder, "home")}
        repeats: list[str] = []

        def once(command: list[str]) -> float:
            subprocess.run([*command, options.python, "-c", LOOP, str(options.steps), *repeats], check=True, env=environment,
                           stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            found, *seconds = open(taken).read().split()
            repeats[:] = [found]
            return statistics.median(map(float, seconds))

        once([])
        for number in range(options.rounds):
            commands = [[], [options.binary, "run", "--"]]
            reported = {len(command): once(command) for command in (commands if number % 2 else commands[::-1])}
            alone_all.append(reported[0])
            with_all.append(reported[3])
            shares.append(reported[3] / reported[0] - 1)
    mean, error = statistics.mean(shares), statistics.stdev(shares) / len(shares) ** 0.5
    print(f"a step alone {statistics.median(alone_all) * 1e3:.3f} ms, with Trackway {statistics.median(with_all) * 1e3:.3f} ms")
    print(f"longer by {mean:+.3%} (95 % interval of {options.rounds} pairs: {mean - 2.1 * error:+.3%} … {mean + 2.1 * error:+.3%})")


if __name__ == "__main__":
    main()
