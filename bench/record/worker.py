"""Logs points with one tool, as a training loop does: `worker.py TOOL FOLDER METRICS CALLS SECONDS_MAX [kill]`.

Prints one JSON document: nanoseconds a call, seconds until all is durable. With `kill` it prints instead the number of
calls that have returned, every hundred calls, and continues until it is killed. Each tool is used as in its manual
for a loop; what is batched or sent in the background stays so."""

import json
import os
import sys
import time
from pathlib import Path

NAMES = ["loss", "grad_norm", "learning_rate", "step_seconds", "batch_wait_seconds", "samples_per_second",
         "memory_allocated_bytes", "memory_reserved_bytes", "val_loss", "accuracy"]  # fmt: skip


def json_line(folder):
    """The plain floor: a line of JSON, flushed to the kernel."""
    file = (folder / "log.jsonl").open("w")

    def log(step, values):
        file.write(json.dumps({"step": step, **values}) + "\n")
        file.flush()

    return log, file.close


def trackway(folder):
    os.environ["TRACKWAY_RECORD"] = str(folder)
    import trackway

    run = trackway.attach()
    return (lambda step, values: run.log(step, values)), run.finish


def trackway_named(folder):
    """The same with names as arguments, as a script writes them."""
    os.environ["TRACKWAY_RECORD"] = str(folder)
    import trackway

    run = trackway.attach()
    return (lambda step, values: run.log(step, **values)), run.finish


def mlflow_file(folder):
    return _mlflow((folder / "store").as_uri())


def mlflow_sqlite(folder):
    return _mlflow(f"sqlite:///{folder}/mlflow.db")


def _mlflow(uri):
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow

    mlflow.set_tracking_uri(uri)
    mlflow.start_run()
    return (lambda step, values: mlflow.log_metrics(values, step=step)), mlflow.end_run


def wandb_offline(folder):
    os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(folder)}
    import wandb

    run = wandb.init(project="bench", settings=wandb.Settings(x_disable_stats=True, console="off"))
    return (lambda step, values: run.log(values, step=step)), run.finish


def aim(folder):
    import aim

    run = aim.Run(repo=str(folder), system_tracking_interval=None, capture_terminal_logs=False)
    return (lambda step, values: run.track(values, step=step)), run.close


def trackio(folder):
    os.environ |= {"TRACKIO_DIR": str(folder)}
    import trackio

    run = trackio.init(project="bench", auto_log_gpu=False)
    del run
    return (lambda step, values: trackio.log(values, step=step)), trackio.finish


def tensorboard(folder):
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(str(folder))

    def log(step, values):
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return log, writer.close


def dvclive(folder):
    from dvclive import Live

    live = Live(str(folder), save_dvc_exp=False, report=None, dvcyaml=None)

    def log(step, values):
        live.step = step
        for name, value in values.items():
            live.log_metric(name, value)
        live.next_step()

    return log, live.end


TOOLS = {one.__name__: one for one in (
    json_line, trackway, trackway_named, mlflow_file, mlflow_sqlite, wandb_offline, aim, trackio, tensorboard, dvclive
)}  # fmt: skip


def measure(log, close, names, calls, seconds_max):
    nanos = []
    values = dict.fromkeys(names, 0.0)
    log(0, values)  # what is done once, such as making files and threads, is not a cost of a call
    end = time.perf_counter() + seconds_max
    for step in range(1, calls + 1):
        for name in names:
            values[name] = step / 3
        began = time.perf_counter_ns()
        log(step, values)
        now = time.perf_counter_ns()
        nanos.append(now - began)
        if now > end * 1e9:
            break
    began = time.perf_counter()
    close()
    os.sync()
    nanos.sort()
    at = lambda share: nanos[int((len(nanos) - 1) * share)]  # noqa: E731
    return {
        "calls": len(nanos),
        "mean": sum(nanos) / len(nanos),
        "p50": at(0.5),
        "p99": at(0.99),
        "durable_seconds": time.perf_counter() - began,
    }


def log_until_killed(log, names):
    for step in range(1, sys.maxsize):
        log(step, {name: step / 3 for name in names})
        if step % 100 == 0:
            os.write(reported, f"{step}\n".encode())


if __name__ == "__main__":
    tool, folder, metrics, calls, seconds_max = sys.argv[1:6]
    # Tools print what they like; the results go where stdout was.
    reported = os.dup(1)
    os.dup2(2, 1)
    log, close = TOOLS[tool](Path(folder).resolve())
    names = NAMES[: int(metrics)]
    if len(sys.argv) > 6:
        log_until_killed(log, names)
    else:
        os.write(reported, json.dumps(measure(log, close, names, int(calls), float(seconds_max))).encode())
    os._exit(0)
