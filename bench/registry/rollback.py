#!/usr/bin/env python3
"""How long a roll back takes: verifying, changing the registry, and copying a model of 1 GiB.

Usage: bench/registry/rollback.py FOLDER --trackway PATH [--gib 1] [--rounds 5]

FOLDER is made and must be empty. This script's Python needs the package `trackway` (`make module`) and NumPy; with `mlflow`, that is
measured in the same run: an alias that is set on a SQLite store, and the artifact copied from where it was logged to. MLflow checks no
byte of what it points to. Two versions of `--gib` are trained, evaluated, gated and promoted; then production goes back and
forth. Figures are medians, with the page cache warm, as for a model that was just in use.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

TRAIN = """
import os, time, numpy, trackway
run = trackway.attach()
state = {"weights": numpy.zeros(int(os.environ["FLOATS"]), dtype="float32")}
run.resume(model=state)
for step in range(1, 3):
    state["weights"][:] = numpy.random.default_rng(step).standard_normal(4096, dtype="float32").repeat(state["weights"].size // 4096)
    run.log(step, loss=1 / step)
    run.checkpoint(step)
    time.sleep(10)  # a save is skipped while the one before is being written
run.finish()
"""
EVALUATE = """
import json, os
with open(os.path.join(os.environ["TRACKWAY_EVALUATION_OUT"], "predictions.csv"), "w") as out:
    out.write("id,label,prediction\\n" + "".join(f"{row},{row % 2},{row % 2 if row % 10 else 1 - row % 2}\\n" for row in range(4000)))
with open(os.path.join(os.environ["TRACKWAY_EVALUATION_OUT"], "metrics.json"), "w") as out:
    json.dump({"quality": {"value": 0.9, "stderr": 0.005, "support": 4000}}, out)
"""


def trackway(options, folder, *arguments):
    began = time.perf_counter()
    done = subprocess.run([options.trackway, *arguments, "--json"], cwd=folder, capture_output=True, text=True, env=environment(options, folder))
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout), time.perf_counter() - began


def environment(options, folder):
    return os.environ | {"TRACKWAY_HOME": str(folder / "home"), "FLOATS": str(int(options.gib * 2**30) // 4)}


def prepare(options, folder):
    """Two versions of a model, both released once."""
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "evaluate.py").write_text(EVALUATE)
    python = json.dumps(sys.executable)
    (folder / "job.toml").write_text(
        f'[run]\nname = "large"\ncommand = [{python}, "train.py"]\npass_environment = ["FLOATS"]\n[checkpoint]\nevery = {{ steps = 1 }}\n'
        f'[evaluate]\ncommand = [{python}, "evaluate.py"]\nafter = false\ngates = ["quality >= 0.8"]\n'
    )
    trackway(options, folder, "run", "job.toml")
    listed, _ = trackway(options, folder, "checkpoint", "ls", "last")
    steps = sorted(str(one["step"]) for one in listed["checkpoints"])
    (folder / "policy.toml").write_text(
        'gates = ["quality"]\nreceipt = ["metrics"]\napprovals = 0\nbaseline = "optional"\n'
    )
    for version, step in enumerate(steps[:2], 1):
        trackway(options, folder, "registry", "register", "large", "--run", "last", "--step", step)
        trackway(options, folder, "registry", "policy", "large", "--file", "policy.toml")
        trackway(options, folder, "eval", "run", "job.toml", "--checkpoint", step)
        if version == 1:
            trackway(options, folder, "gates", "fixture", "last", "--set", "quality=0.5", "--out", "bad.json")
            trackway(options, folder, "gates", "test", "job.toml", "--bad", "bad.json")
        trackway(options, folder, "registry", "promote", "large", str(version))
    return listed["checkpoints"][0]["size_bytes"]


def ours(options, folder):
    alone, copied = [], []
    for number in range(options.rounds):
        target = str(1 + number % 2)
        answer, seconds = trackway(options, folder, "registry", "rollback", "large", "--to-version", target)
        alone.append((seconds, answer["verify_seconds"], answer["control_seconds"]))
    for number in range(options.rounds):
        deploy = folder / f"srv-{number}"
        target = str(1 + number % 2)
        answer, seconds = trackway(options, folder, "registry", "rollback", "large", "--to-version", target, "--deploy", str(deploy))
        copied.append((seconds, answer["deployed"]["copy_seconds"]))
        shutil.rmtree(deploy)
    median = lambda rows, at: statistics.median(row[at] for row in rows)
    print(f"trackway rollback: {median(alone, 0):.2f} s a process; of it verifying every byte {median(alone, 1):.2f} s, the registry {median(alone, 2) * 1000:.0f} ms")
    print(f"trackway rollback --deploy: {median(copied, 0):.2f} s a process; of it copying, checked and synced, {median(copied, 1):.2f} s")
    return median(copied, 0)


def mlflow(options, folder, size_bytes):
    try:
        from mlflow import MlflowClient
        import mlflow.artifacts
    except ImportError:
        print("mlflow: not installed, not measured")
        return None
    client = MlflowClient(f"sqlite:///{folder}/mlflow.db")
    artifacts = []
    client.create_registered_model("large")
    for version in (1, 2):
        source = folder / f"mlflow-{version}"
        source.mkdir()
        (source / "model.bin").write_bytes(os.urandom(1 << 20) * (size_bytes >> 20))
        client.create_model_version("large", source.as_uri())
        artifacts.append(source)
    seconds = []
    for number in range(options.rounds):
        began = time.perf_counter()
        client.set_registered_model_alias("large", "production", str(1 + number % 2))
        swapped = time.perf_counter()
        target = folder / f"mlflow-srv-{number}"
        shutil.copytree(artifacts[number % 2], target)
        os.sync()
        seconds.append((time.perf_counter() - began, swapped - began))
        shutil.rmtree(target)
    whole, swap = (statistics.median(row[at] for row in seconds) for at in (0, 1))
    print(f"mlflow: alias {swap * 1000:.0f} ms, with a plain copy and sync {whole:.2f} s; nothing verified")
    return whole


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trackway", required=True)
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    options.trackway = str(Path(options.trackway).absolute())
    folder = options.folder.absolute()
    size_bytes = prepare(options, folder)
    print(f"a version has {size_bytes / 2**30:.2f} GiB")
    ours_seconds = ours(options, folder)
    peer_seconds = mlflow(options, folder, size_bytes)
    if peer_seconds:
        print(f"ratio to mlflow with its copy: {ours_seconds / peer_seconds:.2f}")
    print(f"of the 60 s that a roll back may take: {ours_seconds / 60:.1%}")


if __name__ == "__main__":
    main()
