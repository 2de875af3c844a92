"""`trackway.compat`: scripts of W&B and MLflow whose import alone was changed (docs/python.md). Each runs in its own process."""

import json
import math
import os
import subprocess
import sys
import textwrap

import flight_record
import pytest
from conftest import attempt_environment, need


def launch(tmp_path, script, inside=True, **more):
    """Runs a script; returns what it printed on both outputs."""
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(script))
    names = [name for name in os.environ if name.startswith(("TRACKWAY_", "WANDB_"))]
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment |= attempt_environment(tmp_path, TRACKWAY_ARTIFACTS=tmp_path / "artifacts") if inside else {}
    command = [sys.executable, path.name]
    done = subprocess.run(command, env={**environment, **more}, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def recorded(tmp_path):
    return flight_record.read(tmp_path / "record-1")


def tags(record):
    return {fields["name"]: fields["value"] for kind, _, fields in record.events if kind == "tag"}


def test_a_script_of_wandb(tmp_path):
    """Proves that settings (nested, of argparse, by attribute, item and update), labels, metrics, the summary and files of a script
    are in the record under the names that an import of its run would have, and that nothing is printed."""
    done = launch(
        tmp_path,
        """
        import argparse
        import trackway.compat.wandb as wandb

        arguments = argparse.Namespace(lr=3e-4, optimizer={"name": "adam", "betas": [0.9, 0.99]}, amp=True)
        with wandb.init(project="cats", name="first", config=arguments, tags=["baseline"], notes="a try") as run:
            assert run is wandb.run and wandb.config.lr == wandb.config["lr"] == run.config.get("lr")
            wandb.config.batch = 64
            wandb.config["epochs"] = 3
            wandb.config.update({"seed": 7}, allow_val_change=True)
            assert wandb.config.optimizer["name"] == "adam" and "lr" in wandb.config and len(wandb.config) == 6
            wandb.define_metric("val/*", summary="min")
            for step in range(3):
                wandb.log({"train": {"loss": 1 / (step + 1)}, "flag": True})
            wandb.log({"late": 1.0}, commit=False)
            wandb.log({"val/acc": 0.5})
            assert wandb.summary["val/acc"] == 0.5
            wandb.summary["best"] = 0.75
            wandb.run.summary.update({"verdict": "good"})
            artifact = wandb.Artifact("weights", type="model", metadata={"size": 3})
            open("model.bin", "w").write("abc")
            artifact.add_file("model.bin")
            wandb.log_artifact(artifact, aliases=["best"])
            wandb.save("*.bin")
            wandb.alert("title", "text")
        assert wandb.run is None
        wandb.finish()
        """,
    )
    assert done.stderr == "" and done.stdout == ""
    record = recorded(tmp_path)
    assert dict(record.params) == {
        "lr": "0.0003", "optimizer.name": "adam", "optimizer.betas": "[0.9, 0.99]", "amp": "true", "batch": "64",
        "epochs": "3", "seed": "7",
    }  # fmt: skip
    assert tags(record) == {
        "project": "cats", "run_name": "first", "notes": "a try", "baseline": "true", "verdict": "good",
    }  # fmt: skip
    assert record.metric("train.loss") == {0: 1.0, 1: 0.5, 2: 1 / 3} and record.metric("flag") == {0: 1, 1: 1, 2: 1}
    assert record.metric("late") == {3: 1.0} and record.metric("val/acc") == {3: 0.5} and record.metric("best") == {4: 0.75}
    files = [fields["name"] for kind, _, fields in record.events if kind == "artifact"]
    assert sorted(files) == ["model.bin", "weights/model.bin"]
    [details] = [fields for kind, _, fields in record.events if kind == "artifact_details"]
    assert details == {"name": "weights", "type": "model", "aliases": '["best"]', "metadata": '{"size": 3}'}
    assert "alert" in record.kinds()


def test_steps_of_wandb(tmp_path):
    """Proves that steps continue from the largest one, that values at an earlier step are recorded there, and that a step
    which is not a whole number is refused in one line."""
    done = launch(
        tmp_path,
        """
        import trackway.compat.wandb as wandb
        run = wandb.init()
        wandb.log({"a": 1}, step=10)
        wandb.log({"b": 1})
        wandb.log({"c": 1})
        wandb.log({"d": 1}, step=4)
        wandb.log({"e": 1}, step=20, commit=True)
        for _ in range(3):
            wandb.log({"f": 1}, step=-1)
            wandb.log({"f": 1}, step=1.5)
        wandb.log({"g": 1}, step=21.0)
        assert run.step == 21
        """,
    )
    record = recorded(tmp_path)
    steps = {name: list(record.metric(name)) for name in sorted(record.names) if len(name) == 1}
    assert steps == {"a": [10], "b": [10], "c": [11], "d": [4], "e": [20], "g": [21]}
    assert done.stderr.count("\n") == 1 and "step" in done.stderr


def test_values_that_are_not_numbers(tmp_path):
    """Proves that numbers of NumPy and PyTorch, NaN and infinities are recorded, and that images, tables, strings and arrays
    are left out with one line for each kind, however often they are logged."""
    need("torch")
    done = launch(
        tmp_path,
        """
        import decimal
        import numpy, torch
        import trackway.compat.wandb as wandb
        wandb.init(config={"lr": numpy.float32(0.5), "layers": numpy.int64(3), "none": None, "odd": object})
        for _ in range(5):
            table = wandb.Table(columns=["a"])
            table.add_data(1)
            wandb.log({
                "f32": numpy.float32(0.5), "i64": numpy.int64(3), "one": numpy.array([2.5]), "nan": float("nan"), "inf": -numpy.inf,
                "tensor": torch.tensor(1.5, requires_grad=True), "half": torch.tensor([0.5], dtype=torch.bfloat16),
                "decimal": decimal.Decimal("0.25"), "huge": 10**400,
                "image": wandb.Image(numpy.zeros((2, 2))), "table": table, "text": "hello", "array": numpy.zeros(3), "none": None,
                "chart": wandb.plot.line(table, "a", "b"), "histogram": wandb.Histogram([1]),
            })
        wandb.watch(None)
        wandb.watch(None, log="all")
        """,
    )
    record = recorded(tmp_path)
    values = {name: record.metric(name)[4] for name in record.names if not name.startswith("trackway/")}
    assert math.isnan(values.pop("nan"))
    assert values == {
        "f32": 0.5, "i64": 3, "one": 2.5, "inf": -math.inf, "tensor": 1.5, "half": 0.5, "decimal": 0.25,
    }  # fmt: skip
    params = dict(record.params)
    assert (params["lr"], params["layers"], params["none"]) == ("0.5", "3", "null") and "object" in params["odd"]
    lines = done.stderr.splitlines()
    kinds = ["int", "Image", "Table", "str", "ndarray", "NoneType", "Graph", "Histogram"]
    assert all(sum(f"of the type {kind} " in line for line in lines) == 1 for kind in kinds), done.stderr
    assert sum("TorchLoop" in line for line in lines) == 1 and len(lines) == len(kinds) + 1


def test_several_threads(tmp_path):
    """Proves that what several threads log without a step is complete: every value at its own step."""
    launch(
        tmp_path,
        """
        import threading
        import trackway.compat.wandb as wandb
        import trackway.compat.mlflow as mlflow
        wandb.init()
        mlflow.start_run(nested=True, run_name="m")
        def work(number):
            for _ in range(500):
                wandb.log({"loss": number})
                mlflow.log_metric("loss", number)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        """,
    )
    record = recorded(tmp_path)
    for name in ("loss", "m/loss"):
        found = record.metric(name)
        assert sorted(found) == list(range(2000))
        assert sorted(found.values()) == [number for number in (0.0, 1.0, 2.0, 3.0) for _ in range(500)]


def test_a_script_of_mlflow(tmp_path):
    """Proves that parameters, metrics with and without steps, tags, files, texts and dicts of a script are in the record,
    that nested and further runs have names with prefixes, and that a failed run is recorded with its exception."""
    done = launch(
        tmp_path,
        """
        import pathlib
        import trackway.compat.mlflow as mlflow
        mlflow.set_experiment("cats")
        with mlflow.start_run(run_name="first", tags={"team": "a"}) as run:
            assert mlflow.active_run() is run and run.info.run_id
            assert mlflow.log_param("lr", 0.5) == 0.5
            mlflow.log_params({"layers": [1, 2], "amp": True})
            for epoch in range(3):
                mlflow.log_metric("loss", 1 / (epoch + 1), step=epoch)
                mlflow.log_metrics({"acc": epoch / 10})
            mlflow.set_tag("stage", "dev")
            mlflow.set_tags({"a": 1})
            pathlib.Path("plots").mkdir()
            pathlib.Path("plots/a.txt").write_text("a")
            mlflow.log_artifact("plots/a.txt", "charts")
            mlflow.log_artifacts("plots")
            mlflow.log_text("hello", "notes/hello.txt")
            mlflow.log_dict({"a": 1}, "config.yaml")
            with mlflow.start_run(nested=True, run_name="fold"):
                mlflow.log_metric("loss", 3.0)
            try:
                mlflow.start_run()
            except mlflow.MlflowException as error:
                assert "active" in str(error)
            assert mlflow.active_run() is run
        assert mlflow.active_run() is None and mlflow.last_active_run().info.status == "FINISHED"
        try:
            with mlflow.start_run():
                mlflow.log_metric("loss", 4.0)
                raise ValueError("no")
        except ValueError:
            pass
        assert mlflow.last_active_run().info.status == "FAILED"
        for value, step in [("x", 1), (1.0, -1)]:
            try:
                mlflow.log_metric("bad", value, step=step)
            except mlflow.MlflowException as error:
                assert "bad" in str(error)
            else:
                raise SystemExit("it was recorded")
        mlflow.end_run()
        mlflow.end_run()
        """,
    )
    record = recorded(tmp_path)
    params = dict(record.params)
    assert (params["lr"], params["layers"], params["amp"]) == ("0.5", "[1, 2]", "True")
    assert record.metric("loss") == {0: 1.0, 1: 0.5, 2: 1 / 3} and record.metric("acc") == {0: 0.0, 1: 0.1, 2: 0.2}
    assert record.metric("fold/loss") == {0: 3.0} and record.metric("run-3/loss") == {0: 4.0} and "bad" not in record.names
    found = tags(record)
    assert found | {"experiment": "cats", "run_name": "first", "team": "a", "stage": "dev", "a": "1"} == found
    files = {fields["name"]: fields["blake3"] for kind, _, fields in record.events if kind == "artifact"}
    assert set(files) == {"charts/a.txt", "plots/a.txt", "notes/hello.txt", "config.yaml"}
    assert [fields["message"] for kind, _, fields in record.events if kind == "exception"] == ["no"]
    assert done.stderr.count("\n") == 1 and "`fold/`" in done.stderr


SCRIPT = {
    "wandb": """
        import trackway.compat.wandb as wandb
        with wandb.init(project="p", config={"a": 1}) as run:
            wandb.log({"loss": 1.0})
            wandb.summary["best"] = 1
            wandb.log_artifact("train.py", name="script", type="code")
        print(run.config["a"], run.summary["loss"])
        """,
    "mlflow": """
        import trackway.compat.mlflow as mlflow
        mlflow.log_param("a", 1)
        mlflow.log_metric("loss", 1.0)
        mlflow.log_text("x", "x.txt")
        mlflow.set_tag("t", 1)
        print(mlflow.active_run().data.params["a"], mlflow.active_run().data.metrics["loss"])
        mlflow.end_run()
        """,
}


@pytest.mark.parametrize("tool", SCRIPT)
def test_outside_an_attempt(tmp_path, tool):
    """Proves that a script runs as before without Trackway, that one line says how to record it, and that nothing is written."""
    done = launch(tmp_path, SCRIPT[tool], inside=False)
    assert done.stdout == "1 1.0\n"
    assert done.stderr == (f"trackway.compat.{tool}: nothing is recorded; to record it: trackway run -- python train.py\n")
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_several_runs_of_wandb(tmp_path):
    """Proves that a run which has begun is returned again, and that with `reinit` or after `finish` another one begins, whose
    names begin with its own."""
    launch(
        tmp_path,
        """
        import trackway.compat.wandb as wandb
        first = wandb.init(config={"lr": 1})
        assert wandb.init(tags=["x"]) is first and first.tags == ("x",)
        wandb.log({"loss": 1.0})
        second = wandb.init(name="b", config={"lr": 2}, reinit=True)
        assert second is not first
        wandb.log({"loss": 2.0})
        second.finish()
        wandb.init(name="b")
        wandb.log({"loss": 3.0})
        """,
    )
    record = recorded(tmp_path)
    assert dict(record.params) == {"lr": "1", "b/lr": "2"}
    losses = {name: record.metric(name) for name in record.names if name.endswith("loss")}
    assert losses == {"loss": {0: 1.0}, "b/loss": {0: 2.0}, "b-3/loss": {0: 3.0}}


def test_a_disabled_run_of_wandb(tmp_path):
    """Proves that `mode="disabled"` and `WANDB_MODE` record nothing and print nothing."""
    for script, more in [("mode='disabled'", {}), ("", {"WANDB_MODE": "disabled"})]:
        text = f"import trackway.compat.wandb as w\nw.init({script}, config={{'a': 1}})\nw.log({{'x': 1}})\nw.finish()\n"
        done = launch(tmp_path, text.replace("(, ", "("), **more)
        assert done.stderr == "" and not (tmp_path / "record-1").exists()


@pytest.mark.parametrize(
    ("tool", "expression", "words"),
    [
        ("wandb", "it.Api()", ["Api", "log_artifact", "docs/python.md"]),
        ("wandb", "it.init().dir", ["dir", "config", "docs/python.md"]),
        ("wandb", "it.init(projct='x')", ["projct"]),
        ("wandb", "it.log({'a': 1})", ["wandb.init() before wandb.log()"]),
        ("wandb", "it.config.lr", ["wandb.init() before wandb.config"]),
        ("wandb", "it.init().config.lr", ["lr"]),
        ("wandb", "it.init().log(3)", ["takes a dict"]),
        ("wandb", "it.log_artifact('none.bin')", ["before wandb.log_artifact()"]),
        ("mlflow", "it.sklearn", ["sklearn", "log_metric", "run.save_model(path)", "docs/python.md"]),
        ("mlflow", "it.log_image", ["log_image", "log_dict"]),
    ],
)
def test_what_is_not_there(tmp_path, tool, expression, words):
    """Proves that an error names what is missing, and what exists, or the call that has to come first."""
    done = launch(
        tmp_path,
        f"""
        import trackway.compat.{tool} as it
        try:
            {expression}
        except Exception as error:
            print(error)
        else:
            raise SystemExit("no error")
        """,
    )
    assert all(word in done.stdout for word in words), done.stdout


def test_calls_without_effect_say_so_once(tmp_path):
    """Proves that what has no effect here is named in one line each, however often it is called."""
    done = launch(
        tmp_path,
        """
        import trackway.compat.mlflow as mlflow
        import trackway.compat.wandb as wandb
        for _ in range(3):
            mlflow.autolog()
            mlflow.set_tracking_uri("http://example.org")
            wandb.init(entity="team", resume="allow", id="x")
            wandb.define_metric("a", step_metric="epoch")
        """,
    )
    lines = done.stderr.splitlines()
    assert len(lines) == 4
    for words in ["trackway.callbacks", "set_tracking_uri", "`entity`, `id`, `resume`", "not `epoch`"]:
        assert sum(words in line for line in lines) == 1, done.stderr


def test_neither_tool_is_imported(tmp_path):
    """Proves that neither tool and no framework is imported."""
    done = launch(
        tmp_path,
        """
        import sys
        import trackway.compat.mlflow, trackway.compat.wandb
        print({"mlflow", "wandb", "numpy", "torch"} & set(sys.modules))
        """,
    )
    assert done.stdout == "set()\n" and json.dumps(done.stderr) == '""'
