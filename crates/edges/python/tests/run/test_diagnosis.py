"""Diagnoses: the first NaN is traced to its layer, operation and batch, slow steps to what they wait for."""

import json
import os
import runpy
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import flight_record
import pytest
from conftest import attempt_environment, need

torch = need("torch")

SCRIPT = Path(__file__).parents[1] / "scripts/train_nan.py"
NUMERIC = {"TRACKWAY_KIND": "diagnose", "TRACKWAY_DIAGNOSIS": "numeric", "TRACKWAY_MAX_STEPS": "43"}


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Runs the script in this process; returns the facts by topic and the record."""

    def run(fault, **environment):
        for name, value in attempt_environment(tmp_path, 1, **environment).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), "60", fault])
        runpy.run_path(str(SCRIPT), run_name="__main__")
        record = flight_record.read(tmp_path / "record-1")
        facts = {
            fields["about"]: json.loads(fields["facts"])
            for kind, _, fields in record.events
            if kind == "diagnosis_facts"
        }
        return facts, record

    return run


def blind(record):
    return [fields for kind, _, fields in record.events if kind == "diagnosis_blind"]


def test_the_first_nan_of_the_forward_pass(train):
    """Proves that layer, operation, line, step, batch, the statistics of the input and the first gradient are
    recorded, that the training ends there, and that no checkpoint is saved."""
    facts, record = train("forward", **NUMERIC, TRACKWAY_CHECKPOINT_EVERY_STEPS="5")
    found = facts["numeric"]
    assert (found["place"], found["value"], found["operation"]) == ("forward", "NaN", "log"), found
    assert (found["layer"], found["layer_type"]) == ("2", "Gate")
    assert (found["step"], found["batch"]) == (23, 22)
    assert found["source"].startswith("train_nan.py:") and found["source"].endswith("in forward")
    (inputs,) = found["inputs"]
    assert inputs["max"] < 0 and inputs["nan_count"] == 0 and inputs["shape"] == [16, 8]
    assert found["batch_tensors"][0]["min"] < -9e5
    assert found["gradient"]["parameter"] == "3.bias" and found["gradient"]["of"] == 5
    assert max(step for name, step, _ in record.points if name == "loss") == 23
    assert not blind(record) and "checkpoint_committed" not in record.kinds()


def test_the_tensors_of_a_batch(train):
    """Proves that every tensor of a batch is described, the targets too."""
    facts, _ = train("forward", **NUMERIC)
    assert [tensor["name"] for tensor in facts["numeric"]["batch_tensors"]] == ["0", "1"], facts


def test_the_first_gradient_that_is_not_finite(train):
    """Proves that of finite outputs whose gradient is NaN the operation of the backward pass, its layer, its line
    and the first parameter are recorded."""
    facts, record = train("backward", **NUMERIC)
    found = facts["numeric"]
    assert (found["place"], found["operation"], found["layer"]) == ("backward", "SqrtBackward0", "2"), found
    assert (found["step"], found["batch"]) == (23, 22)
    assert found["source"].endswith("in forward")
    assert found["gradient"]["parameter"] == "2.gain"
    assert not blind(record)


def test_a_gradient_that_grows(train):
    """Proves that where every value stays finite, the parameter whose gradient grew the most is recorded with step
    and batch."""
    facts, _ = train("spike", **NUMERIC)
    assert "numeric" not in facts
    found = facts["growth"]
    assert (found["step"], found["batch"]) == (23, 22) and found["ratio"] > 100, found
    assert found["parameter"].split(".")[0] in "0123" and found["batch_tensors"][0]["max"] > 200


def test_only_the_steps_that_are_wanted_are_observed(train):
    """Proves that nothing is recorded of a healthy training but what is observed, and that a symptom before the
    first observed step is seen as one of the parameters."""
    facts, record = train("none", **NUMERIC)
    assert set(facts) <= {"observed", "growth"} and not blind(record)
    assert facts["observed"]["framework"] == "torch"


def test_parameters_that_are_not_finite_already(train):
    """Proves that a training whose parameters are NaN before the first observed step says so."""
    facts, _ = train("forward", **NUMERIC, TRACKWAY_DIAGNOSIS_FROM_STEP="30")
    assert facts["numeric"]["place"] == "parameter" and "3.bias" in facts["numeric"]["bad_parameters"]


def test_a_live_training_names_the_gradients(train):
    """Proves that without a diagnosis the first NaN loss records once which parameters have such gradients, the one
    that the backward pass reached first before the others."""
    facts, record = train("forward")
    events = [(step, fields) for kind, step, fields in record.events if kind == "nonfinite_gradients"]
    assert not facts and len(events) == 1, events
    step, fields = events[0]
    assert (step, fields["metric"], fields["parameter"]) == (23, "loss", "3.bias")
    assert (fields["nonfinite"], fields["of"], fields["weights"]) == ("5", "5", "0.weight")
    assert "0.weight" in fields["others"]


def test_a_profile_names_what_steps_wait_for(attempt, tmp_path):
    """Proves that the seconds of a step, the fraction of waiting for data and the parts of the profiler are
    recorded, with a trace that other tools can open."""
    import gzip

    run = attempt(
        TRACKWAY_KIND="diagnose", TRACKWAY_DIAGNOSIS="throughput", TRACKWAY_MAX_STEPS=50,
        TRACKWAY_ARTIFACTS=tmp_path / "artifacts",
    )  # fmt: skip
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for each other take long on a busy machine
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def slow():
        for _ in range(50):
            time.sleep(0.1)
            yield torch.ones(8, 64)

    steps = 0
    for step, batch in run.batches(slow(), steps=50):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        run.log(step, loss=loss.item())
        steps += 1
    run.finish()
    torch.set_num_threads(threads)
    record = flight_record.read(tmp_path / "record-1")
    (found,) = [json.loads(fields["facts"]) for kind, _, fields in record.events if kind == "diagnosis_facts"]
    assert (found["by"], found["steps"], steps) == ("torch.profiler", 10, 15), found
    assert found["step_seconds"] >= 0.1
    parts = {part["name"]: part["fraction"] for part in found["parts"]}
    assert found["parts"][0]["name"] == "data loading" and parts["data loading"] > 0.5
    assert parts["backward"] > 0 and parts["optimizer"] > 0 and found["top"]
    (kept,) = [fields for kind, _, fields in record.events if kind == "artifact"]
    assert kept["name"] == found["trace"] == "diagnosis/trace.json.gz"
    with gzip.open(tmp_path / "artifacts" / kept["blake3"]) as trace:
        assert json.load(trace)["traceEvents"]


def test_without_pytorch_the_stack_is_sampled(attempt, tmp_path, monkeypatch):
    """Proves that a script without PyTorch gets the lines that its main thread is in, and that what could not be
    seen is said."""
    from trackway._diagnosis import diagnosis_profile as _diagnosis_profile

    monkeypatch.setattr(
        _diagnosis_profile, "_arrays", type("NoFramework", (), {"loaded": staticmethod(lambda name: None)})
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    run = attempt(TRACKWAY_KIND="diagnose", TRACKWAY_DIAGNOSIS="throughput", TRACKWAY_MAX_STEPS=12)
    run.resume()

    def work_hard():
        until = time.perf_counter() + 0.03
        while time.perf_counter() < until:
            pass

    for step, _ in run.batches([0] * 12, steps=12):  # too few for ten after five
        work_hard()
        run.log(step, loss=1.0)
    run.finish()
    record = flight_record.read(tmp_path / "record-1")
    (found,) = [json.loads(fields["facts"]) for kind, _, fields in record.events if kind == "diagnosis_facts"]
    assert found["by"] == "samples" and "py-spy is not installed" in found["why"]
    assert found["top"][0]["name"].startswith("work_hard (test_diagnosis.py:"), found
    assert found["parts"][0]["name"] == "the rest of the loop"


def test_py_spy_is_used_where_it_may_look(tmp_path):
    """Proves that py-spy, where it is installed and permitted, names the lines of the script, and that its result
    is kept."""
    program = shutil.which("py-spy", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    if program is None:
        pytest.skip("py-spy is not installed")
    script = tmp_path / "busy.py"
    script.write_text(
        "import time, trackway\n"
        "run = trackway.attach()\n"
        "def work_hard():\n"
        "    until = time.perf_counter() + 0.2\n"
        "    while time.perf_counter() < until: pass\n"
        "for step, _ in run.batches([0] * 20, steps=20):\n"
        "    work_hard()\n"
        "    run.log(step, loss=1.0)\n"
        "run.finish()\n"
    )
    environment = attempt_environment(
        tmp_path, TRACKWAY_DIAGNOSIS="throughput", TRACKWAY_MAX_STEPS=20, TRACKWAY_ARTIFACTS=tmp_path / "artifacts"
    )
    path = os.pathsep.join([os.path.dirname(program), os.environ["PATH"]])
    subprocess.run([sys.executable, script], env={**os.environ, **environment, "PATH": path}, check=True)
    record = flight_record.read(tmp_path / "record-1")
    (found,) = [json.loads(fields["facts"]) for kind, _, fields in record.events if kind == "diagnosis_facts"]
    if found["by"] != "py-spy":
        pytest.skip(f"py-spy may not look here: {found['why']}")
    assert found["top"][0]["name"].startswith("work_hard ("), found
    assert found["trace"] == "diagnosis/py-spy.txt"


def test_a_hang_shortens_barriers(attempt, monkeypatch, tmp_path):
    """Proves that in a diagnosis of a hang a process group that is created gets the shorter time-out."""
    seen = []
    original = torch.distributed.init_process_group
    fake = lambda *arguments, **named: seen.append(named["timeout"].total_seconds())  # noqa: E731
    for module in (torch.distributed, torch.distributed.distributed_c10d):
        monkeypatch.setattr(module, "init_process_group", fake)
    run = attempt(
        TRACKWAY_KIND="diagnose", TRACKWAY_DIAGNOSIS="hang", TRACKWAY_DIAGNOSIS_BARRIER_SECONDS=30, TRACKWAY_MAX_STEPS=5
    )
    run.resume()
    torch.distributed.init_process_group("gloo")
    assert seen == [30.0] and original is not torch.distributed.init_process_group


@pytest.mark.parametrize("recorded", [True, False])
def test_operations_are_compared_where_none_are_recorded(attempt, monkeypatch, recorded):
    """Proves that PyTorch compares each operation of all ranks where it has no recorder of them, and else does not, since
    DistributedDataParallel of PyTorch 2.15 crashes with that."""
    distributed = torch.distributed
    monkeypatch.setattr("trackway._diagnosis.hang.has_recorder", lambda: recorded)
    original, before = distributed.init_process_group, distributed.get_debug_level()
    try:
        attempt(TRACKWAY_KIND="diagnose", TRACKWAY_DIAGNOSIS="hang", TRACKWAY_DIAGNOSIS_BARRIER_SECONDS=30)
        assert (distributed.get_debug_level() == distributed.DebugLevel.DETAIL) is not recorded
    finally:
        distributed.set_debug_level(before)
        for module in (distributed, distributed.distributed_c10d):
            module.init_process_group = original


@pytest.mark.parametrize("fault", ["asleep", "different"])
def test_a_hang_records_the_operations_of_each_rank(tmp_path, fault):
    """Proves that in real processes with DistributedDataParallel, with NCCL where there is a GPU, each rank records
    which operations it entered once nothing changes: the one that is away ends before the one in which the other waits,
    or both are in different ones."""
    cuda = torch.cuda.is_available()
    if cuda and fault == "different":
        pytest.skip("NCCL may complete different operations with each other, and wait later")
    environment = attempt_environment(
        tmp_path, TRACKWAY_KIND="diagnose", TRACKWAY_DIAGNOSIS="hang", TRACKWAY_DIAGNOSIS_BARRIER_SECONDS=20,
        TRACKWAY_MAX_STEPS=20, TORCH_FR_BUFFER_SIZE=2000, TORCH_NCCL_TRACE_BUFFER_SIZE=2000, WORLD_SIZE=2,
        MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port(),
    )
    command = [sys.executable, str(Path(__file__).parents[1] / "scripts/train_hang.py"), fault]
    ranks = [subprocess.Popen(command, env={**os.environ, **environment, "RANK": str(rank)}) for rank in range(2)]
    try:
        groups = operations_of_ranks(tmp_path / "record-1", until=time.monotonic() + 120)
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    (waits,) = [one for one in groups[0] if not one["operations"][-1]["done"]]
    (away,) = [one for one in groups[1] if one["name"] == waits["name"]]
    last_done = max(one["number"] for one in waits["operations"] if one["done"])
    pending = next(one for one in waits["operations"] if not one["done"])
    assert pending["name"] == "all_reduce" and pending["sizes"] == [[24]], pending
    # NCCL's are entered by the thread of the backward pass, which has no line of the script.
    assert cuda or pending["at"].startswith("train_hang.py:"), pending
    if fault == "asleep":
        assert away["operations"][-1]["number"] == last_done and away["operations"][-1]["done"], away
    else:
        (other,) = [one for one in away["operations"] if one["number"] == pending["number"]]
        assert "gather" in other["name"] and not other["done"], other


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def operations_of_ranks(record, until):
    """The last groups of operations that each of two ranks recorded, as soon as both did."""
    while time.monotonic() < until:
        events = flight_record.read(record).events if record.exists() else []
        facts = [json.loads(fields["facts"]) for kind, _, fields in events if kind == "diagnosis_facts"]
        groups = {one["rank"]: one["groups"] for one in facts if "groups" in one}
        if len(groups) == 2:
            return groups
        time.sleep(0.5)
    raise AssertionError("no rank recorded its operations")


def test_training_is_not_observed(attempt, tmp_path):
    """Proves that a training attempt has no diagnosis."""
    assert "TRACKWAY_DIAGNOSIS" not in os.environ
    run = attempt()
    assert [batch for _, batch in run.batches(["a", "b"])] == ["a", "b"]
    assert run._diagnosis is None and not flight_record.read(tmp_path / "record-1").kinds()[1:]
