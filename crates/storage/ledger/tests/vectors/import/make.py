"""Makes the stores of this folder with the real tools; one environment each.

    python make.py mlflow-folder FOLDER     mlflow 3.17.2, with MLFLOW_ALLOW_FILE_STORE=true
    python make.py mlflow-sqlite FILE       mlflow 3.17.2; kept as FILE.gz
    python make.py wandb FOLDER             wandb 0.31.0, offline

TensorBoard's folders are those of `crates/base/formats/tests/vectors/tensorboard`.
"""

import math
import os
import sys

kind, path = sys.argv[1], sys.argv[2]


def mlflow_store(uri):
    import mlflow
    from mlflow.tracking import MlflowClient

    mlflow.set_tracking_uri(uri)
    experiment = mlflow.set_experiment("income").experiment_id
    client = MlflowClient()
    for i in range(2):
        with mlflow.start_run(run_name=f"baseline-{i}"):
            mlflow.log_params({"lr": 0.1 / (i + 1), "optimizer": "adam"})
            mlflow.set_tags({"team": "search"})
            for step in range(5):
                mlflow.log_metric("loss", 1 / (step + 1 + i), step=step)
                mlflow.log_metrics({"val/acc": step / 10}, step=step)
            mlflow.log_metric("bad", math.inf if i == 0 else math.nan, step=0)
    died = client.create_run(experiment, run_name="died").info.run_id
    client.log_metric(died, "loss", 3.0, step=0)
    client.set_terminated(client.create_run(experiment, run_name="failed").info.run_id, "FAILED")
    client.delete_run(client.create_run(experiment, run_name="deleted").info.run_id)


def wandb_store(folder):
    import wandb

    for i in range(2):
        run = wandb.init(
            project="income", name=f"sweep-{i}", dir=folder, mode="offline", id=f"abc{i}", group="g",
            config={"lr": 0.1 / (i + 1), "optimizer": "adam", "model": {"layers": 2}}, tags=["search", "nightly"],
            settings=wandb.Settings(x_disable_stats=True, console="off", disable_git=True, disable_code=True,
                                    x_save_requirements=False, x_disable_meta=True))
        for step in range(5):
            run.log({"loss": 1 / (step + 1 + i), "val/acc": step / 10, "nested": {"a": step}, "text": "x"})
        run.log({"loss": math.nan, "big": math.inf})
        run.log({"sparse": 1.5}, step=20)
        run.finish(exit_code=i)


if kind == "mlflow-folder":
    mlflow_store(f"file:{os.path.abspath(path)}")
elif kind == "mlflow-sqlite":
    mlflow_store(f"sqlite:///{os.path.abspath(path)}")
elif kind == "wandb":
    wandb_store(path)
