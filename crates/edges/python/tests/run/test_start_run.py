"""Runs that a process starts which Trackway did not launch, with the real command."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import trackway
from trackway.errors import InputError


def _has_detach(program):
    return "--detach" in subprocess.run([program, "run", "--help"], capture_output=True, text=True, check=False).stdout


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home of the commands of a test. Without the command the test is skipped, which is printed."""
    program = shutil.which("trackway")
    if program is None or not _has_detach(program):
        pytest.skip("no `trackway` with `run --detach` in PATH")
    for name in [name for name in os.environ if name.startswith("TRACKWAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRACKWAY_HOME", str(tmp_path / "home"))
    return tmp_path


def explained():
    """What `trackway explain` knows of the last run, once its attempt is sealed."""
    for _ in range(200):
        done = subprocess.run(["trackway", "explain", "last", "--json"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            page = json.loads(done.stdout)
            if page["attempt"] and page["attempt"]["state"] == "sealed":
                return page
        time.sleep(0.1)
    raise AssertionError("the attempt was not sealed")


def names(items):
    return {item["name"]: item["value"] for item in items}


def test_a_process_is_the_attempt(home):
    """Proves that a `with` block is an attempt with metrics, parameters and tags, that the process is itself again afterwards, and
    that a second run of it is another one."""
    before = dict(os.environ)
    with trackway.start_run(name="probe", params={"lr": 3e-4}, tags={"kind": "probe"}) as run:
        assert run.enabled
        with pytest.raises(InputError, match="has not ended"):
            trackway.start_run()
        for step in range(1, 6):
            run.log(step, loss=1.0 / step)
    assert dict(os.environ) == before
    page = explained()
    assert page["run"]["name"] == "probe"
    assert (page["run"]["state"], page["attempt"]["exit_code"]) == ("completed", 0)
    assert names(page["parameters"])["lr"] == "0.0003"
    assert names(page["tags"]) == {"kind": "probe"}
    assert page["attempt"]["last_step"] == 5
    assert any(event["kind"] == "process_attached" for event in page["timeline"])
    first = page["run"]["run_id"]
    run = trackway.start_run(name="probe")
    run.log(1, loss=0.5)
    run.finish()
    assert explained()["run"]["run_id"] != first


def test_an_exception_fails_the_run(home):
    """Proves that an exception in the block reaches the caller and is the reason of the end."""
    with pytest.raises(ZeroDivisionError), trackway.start_run(name="broken") as run:
        run.log(1, loss=1.0)
        1 / 0  # noqa: B018
    page = explained()
    assert (page["run"]["state"], page["attempt"]["exit_code"]) == ("failed", 1)
    assert "ZeroDivisionError" in json.dumps(page["termination"])


def test_a_dead_kernel_is_seen(home):
    """Proves that the attempt of a process that is killed is sealed without any other command, as killed."""
    code = (
        "import time, trackway\nrun = trackway.start_run(name='kernel')\nrun.log(1, loss=1.0)\n"
        "print('on', flush=True)\ntime.sleep(600)\n"
    )
    kernel = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert kernel.stdout.readline() == "on\n"
    kernel.send_signal(signal.SIGKILL)
    kernel.wait()
    page = explained()
    assert (page["attempt"]["signal"], page["attempt"]["last_step"]) == (9, 1)
    assert page["run"]["state"] == "failed"


def test_a_process_that_ends_in_order(home):
    """Proves that a process which never calls `finish` completes its run when it ends, and that `trackway stop` is seen by it."""
    code = (
        "import time, trackway\nrun = trackway.start_run(name='repl')\nprint('on', flush=True)\nstep = 0\n"
        "while not run.should_stop():\n    step += 1\n    run.log(step, loss=1.0)\n    time.sleep(0.05)\n"
    )
    repl = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert repl.stdout.readline() == "on\n"
    subprocess.run(["trackway", "stop", "last"], check=True)
    assert repl.wait(timeout=60) == 0
    page = explained()
    assert (page["run"]["state"], page["attempt"]["exit_code"]) == ("stopped", 0)


def test_within_an_attempt(attempt, tmp_path):
    """Proves that under `trackway run` no other run is started: the parameters and tags are those of the attempt."""
    attempt()
    run = trackway.start_run(name="ignored", params={"lr": 0.1}, tags={"a": "b"})
    assert type(run) is trackway.Run
    run._finish()


def test_without_the_command(monkeypatch):
    """Proves that a missing command is an error that says so, and that nothing is left behind."""
    monkeypatch.delenv("TRACKWAY_ATTEMPT", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="not in PATH"):
        trackway.start_run()
