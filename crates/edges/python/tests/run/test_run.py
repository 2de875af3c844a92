"""The run: the record, requests to stop and to save, resuming, and what happens outside an attempt."""

import json
import math
import os
import random
import signal
import struct
import subprocess
import sys
import time

import flight_record
import numpy
import pytest
from conftest import attempt_environment, need, record_bytes

import trackway
from trackway import FencedError, InputError, IntegrityError, checkpoint


def test_outside_an_attempt_nothing_happens(tmp_path, monkeypatch):
    """Proves that the same script runs without Trackway: nothing is written, nothing is requested, nothing raises."""
    monkeypatch.chdir(tmp_path)
    with trackway.attach() as run:
        assert not run.enabled
        start = run.resume(model={"w": [1.0]})
        assert start == 1 and not start.resumed
        assert list(run.batches("abc", start=start)) == [(1, "a"), (2, "b"), (3, "c")]
        run.log(1, loss=2.0)
        run.event("x", step=1, why="y")
        run.param("lr", 0.1)
        run.heartbeat(1)
        run.tag("a", "b")
        run.progressive(1, 0.5)
        run.artifact(__file__)
        run.exception(ValueError())
        assert not run.checkpoint(1, force=True) and not run.should_stop()
    assert list(tmp_path.iterdir()) == []


def test_what_is_recorded(attempt, tmp_path):
    """Proves that metrics, events and parameters are in the record, also those whose names are not identifiers."""
    run = attempt()
    run.log(3, {"train/loss": 0.5}, accuracy=1)
    run.event("epoch_finished", step=3, epoch=1)
    run.param("learning_rate", 0.25)
    run.heartbeat(4)
    run.finish()
    record = record_bytes(tmp_path)
    for word in [b"train/loss", b"accuracy", b"epoch_finished", b"learning_rate", b"0.25"]:
        assert word in record


def test_logging_never_raises(attempt, tmp_path):
    """Proves that values which are not numbers are skipped, reported once by name, and never stop a training."""

    class Broken:
        def __str__(self):
            raise RuntimeError("no")

        def __float__(self):
            raise RuntimeError("no")

    run = attempt()
    for _ in range(3):
        run.log(1, lost="text", none=None, broken=Broken(), kept=1.5)
        run.log("x", a=1)
        run.log(-1, a=1)
        run.log(1, "no dict")
        run.log(1, {1: 2.0})
        run.event(Broken(), step="x", value=Broken())
        run.param(Broken(), Broken())
        run.heartbeat(None)
    run.finish()
    record = record_bytes(tmp_path)
    assert record.count(b"value_unusable") == 6 and record.count(b"lost") == 1 and b"kept" in record


def test_tensors_are_numbers(attempt, tmp_path, recwarn):
    """Proves that tensors of one element are logged, without a warning about gradients."""
    torch = need("torch")
    run = attempt()
    run.log(1, loss=torch.tensor(1.0, requires_grad=True) * 2, half=torch.tensor([0.5], dtype=torch.bfloat16))
    run.finish()
    assert b"value_unusable" not in record_bytes(tmp_path) and not recwarn.list


def control(folder, *commands):
    lines = [json.dumps({"version": 1, "id": number, "command": command}) for number, command in enumerate(commands, 1)]
    (folder / "control-1").write_text("".join(f"{line}\n" for line in lines))


def test_a_stop_ends_the_loop(attempt, tmp_path):
    """Proves that a stop ends `batches` behind a checkpoint of the step that was reached."""
    run = attempt()
    state = {"n": 0}
    run.resume(values=state)
    for step, _ in run.batches(range(100)):
        state["n"] = step
        if step == 4:
            control(tmp_path, "stop")
            while not run.should_stop():  # the control file is looked at ten times a second
                pass
        run.checkpoint(step)
    assert step == 4
    run.finish()
    again = attempt(epoch=2)
    back = {"n": 0}
    assert again.resume(values=back) == 5 and back == {"n": 4}


@pytest.mark.parametrize("by_signal", [True, False])
def test_a_stop_behind_the_checkpoint_of_a_step(tmp_path, by_signal):
    """Proves that a stop which comes right after `checkpoint` returned that none is due ends the loop one step later,
    with a checkpoint of that step."""
    code = (
        "import os, pathlib, signal, sys, time, trackway\n"
        "run = trackway.attach()\n"
        "due = run._checkpoint_due\n"
        "def stop_behind(step):\n"
        "    answer = due(step)\n"
        "    if step == 5 and sys.argv[1] == 'True':\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "    elif step == 5:\n"
        "        command = '{\"version\": 1, \"id\": 1, \"command\": \"stop\"}\\n'\n"
        "        pathlib.Path(os.environ['TRACKWAY_CONTROL']).write_text(command)\n"
        "        time.sleep(0.2)\n"  # the control file is looked at ten times a second
        "    return answer\n"
        "run._checkpoint_due = stop_behind\n"
        "for step, _ in run.batches(range(100)):\n"
        "    run.checkpoint(step)\n"
        "run.finish()\n"
        "print(step)\n"
    )
    environment = {**os.environ, **attempt_environment(tmp_path, TRACKWAY_CHECKPOINT_EVERY_STEPS=3)}
    command = [sys.executable, "-c", code, str(by_signal)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == "6\n"
    assert checkpoint.list(tmp_path / "checkpoints")[-1].step == 6


def test_a_cadence_in_epochs(attempt):
    """Proves that a cadence in epochs saves at the last step of each second epoch, also after a resume within one, at the end of
    the epoch for a loader without a length, and that a script that never reports its epochs is refused at its first step."""

    def train(run, loader, stop_at=None):
        for step, _ in run.batches(loader, start=run.resume(), epochs=4):
            run.checkpoint(step, force=step == stop_at, wait=True)
            if step == stop_at:
                return
        run.checkpoint(step, wait=True)

    def saved():
        return [one.step for one in checkpoint.list(os.environ["TRACKWAY_CHECKPOINTS"])]

    every = {"TRACKWAY_CHECKPOINT_EVERY_EPOCHS": 2}
    train(attempt(1, **every), "abc", stop_at=7)
    assert saved() == [6, 7]
    train(attempt(2, **every), "abc")
    assert saved() == [6, 7, 12]

    class Unsized:
        def __iter__(self):
            return iter("ab")

    run = attempt(3, **every)
    for step, _ in run.batches(Unsized(), epochs=6):
        run.checkpoint(step, wait=True)
    run.checkpoint(step, wait=True)
    assert saved()[-3:] == [5, 9, 12]
    with pytest.raises(InputError, match=r"has not reported how many are finished: take the batches from run.batches\(\)"):
        attempt(4, **every).checkpoint(1)


def test_a_loop_over_epochs(attempt):
    """Proves that a script with its own loop over epochs resumes in the middle of one, at its end and between two."""

    def train(run, stop_at=None):
        seen = []
        start = run.resume()
        for epoch in range(run.epoch, 3):
            for step, item in run.batches("abcd", start=start):
                seen.append((epoch, step, item))
                run.checkpoint(step, force=step == stop_at, wait=True)
                if step == stop_at:
                    return seen
        return seen

    whole = train(trackway.attach())
    assert [step for _, step, _ in whole] == list(range(1, 13)) and whole[5] == (1, 6, "b")
    epoch = 0
    for stop_at in (3, 4, 8, 9):
        epoch += 1
        first = train(attempt(epoch=epoch), stop_at)
        assert whole[: len(whole)][stop_at - len(first) : stop_at] == first
    assert train(attempt(epoch=epoch + 1)) == whole[9:]


def cursors(folder, epoch=1):
    """Step, batch and epoch of each recorded place in the data."""
    events = flight_record.read(folder / f"record-{epoch}").events
    return [(step, int(reported["batch"]), int(reported["epoch"])) for kind, step, reported in events if kind == "data_cursor"]


def test_the_place_in_the_data_is_reported(attempt, tmp_path):
    """Proves that the batch of every step follows from the record: once per epoch, and after a resume with the
    count of all batches."""
    run = attempt()
    for step, _ in run.batches("abc", epochs=3):
        run.checkpoint(step, force=step == 5)
    run.finish()
    assert cursors(tmp_path) == [(1, 0, 0), (4, 3, 1), (7, 6, 2)]
    run = attempt(epoch=2)
    start = run.resume()
    assert [step for step, _ in run.batches("abc", start=start, epochs=3)] == [6, 7, 8, 9]
    run.finish()
    assert cursors(tmp_path, 2) == [(6, 5, 1), (7, 6, 2)]


class Deals:
    """A loader that keeps its own place: 10 batches a pass."""

    def __init__(self):
        self.place = 0

    def __iter__(self):
        while self.place < 10:
            self.place += 1
            yield self.place - 1
        self.place = 0

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]


@pytest.mark.parametrize("loader", [list, Deals, "torch"])
def test_batches_are_skipped(attempt, tmp_path, loader):
    """Proves by number which batches are trained on after a rollback: steps count on without the skipped ones, in every
    pass, for a loader with and without a position, again after a resume within the ranges, and by the record."""
    if loader == "torch":
        torch = need("torch")

        def make():
            return torch.utils.data.DataLoader(list(range(10)), batch_size=None)

    else:
        make = Deals if loader is Deals else lambda: list(range(10))

    def train(epoch, stop, **more):
        run = attempt(epoch=epoch, **more)
        start = run.resume()
        seen = []
        for step, batch in run.batches(make(), start=start, steps=20):
            seen.append((step, int(batch)))
            run.checkpoint(step, force=step in (3, stop), wait=True)
            if step == stop:
                break
        run.finish()
        return seen

    assert train(1, 5) == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]
    # Resumed behind batch 4; 6, 7 and, in the second pass, 1 to 3 are skipped.
    ranges = {"TRACKWAY_SKIP_BATCHES": "2..4,6..8,11..14"}
    assert train(2, 9, **ranges) == [(6, 5), (7, 8), (8, 9), (9, 0)]
    assert cursors(tmp_path, 2) == [(6, 5, 0), (7, 8, 0), (9, 10, 1)]
    assert train(3, 12, **ranges) == [(10, 4), (11, 5), (12, 6)]
    assert cursors(tmp_path, 3) == [(10, 14, 1)]


def test_what_is_skipped_is_reported(attempt, monkeypatch):
    """Proves that a loop of another kind can get the ranges, that a damaged variable is not an empty one, and that outside an
    attempt nothing is skipped."""
    assert attempt(TRACKWAY_SKIP_BATCHES="1..3, 7..8").skipped_batches == [(1, 3), (7, 8)]
    run = attempt(epoch=2, TRACKWAY_SKIP_BATCHES="1..x")
    with pytest.raises(InputError, match="TRACKWAY_SKIP_BATCHES"):
        next(run.batches("abc"))
    monkeypatch.delenv("TRACKWAY_RECORD")
    assert list(trackway.attach().batches("abc")) == [(1, "a"), (2, "b"), (3, "c")]


def test_a_pass_that_was_left_is_over(attempt):
    """Proves that leaving a loop and beginning another one begins a new pass, as with any iterable."""
    run = attempt()
    assert next(iter(run.batches("abc"))) == (1, "a")
    assert list(run.batches("abc")) == [(2, "a"), (3, "b"), (4, "c")]
    assert run.epoch == 2
    assert list(run.batches("ab", epochs=3)) == [(5, "a"), (6, "b")]
    assert list(run.batches(iter("xy"), epochs=9)) == [(7, "x"), (8, "y")]


def test_a_checkpoint_on_demand(attempt, tmp_path):
    """Proves that a command of the control file makes the next `checkpoint` save."""
    run = attempt(TRACKWAY_CHECKPOINT_EVERY_STEPS=1_000)
    assert not run.checkpoint(1)
    control(tmp_path, "checkpoint_now")
    while not run._checkpoint_due(2):
        pass
    assert run.checkpoint(2, wait=True)
    assert [one.step for one in checkpoint.list(tmp_path / "checkpoints")] == [2]


def test_without_a_cadence_each_chosen_step_is_saved(attempt, tmp_path):
    """Proves that calls at steps which the script chose save without a cadence, and that calls at each step save seldom."""
    run = attempt()
    saved = [step for step in (1000, 2000, 3000, *range(3001, 3100)) if run.checkpoint(step, wait=step <= 3000)]
    assert saved == [1000, 2000, 3000]
    assert [one.step for one in checkpoint.list(tmp_path / "checkpoints")] == [1000, 2000, 3000]


def test_the_cadence_of_the_run_file(attempt, tmp_path):
    """Proves that `checkpoint` saves when the run file requires it, and at the last step."""
    run = attempt(TRACKWAY_CHECKPOINT_EVERY_STEPS=3)
    run.resume()
    saved = []
    for step, _ in run.batches(range(8), steps=8):
        if run.checkpoint(step, metrics={"loss": step}, wait=True):
            saved.append(step)
    assert saved == [3, 6, 8]
    run.finish()
    start = attempt(epoch=2).resume()
    assert start.metrics == {"loss": 8.0}


def test_a_newer_attempt_fences(attempt):
    """Proves that an attempt that was replaced is asked to stop, and saves nothing more."""
    old = attempt()
    assert old.checkpoint(1, force=True, wait=True)
    new = attempt(epoch=2)
    assert new.resume() == 2
    with pytest.raises(FencedError):
        old.checkpoint(2, force=True, wait=True)
    assert old.should_stop()


def test_damage_steps_back_and_is_reported(attempt, tmp_path):
    """Proves that a damaged checkpoint is skipped with the reason, and that damage everywhere is an error."""
    run = attempt()
    for step in (1, 2):
        run.checkpoint(step, state={"values": {"n": step}}, force=True, wait=True)
    run.finish()
    folders = [tmp_path / "checkpoints" / one.object_prefix for one in checkpoint.list(tmp_path / "checkpoints")]
    (folders[1] / "values.json").write_bytes(b"{}")
    values = {"n": 0}
    start = attempt(epoch=2).resume(values=values)
    assert start == 2 and values == {"n": 1}
    assert [(step, "values.json" in why) for step, why in start.fallbacks] == [(2, True)]
    (folders[0] / "values.json").write_bytes(b"{}")
    with pytest.raises(IntegrityError):
        attempt(epoch=3).resume(values=values)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda run: run.resume(rng={}), ["`rng`", "saved automatically"]),
        (lambda run: run.resume(**{"a-b": {}}), ["'a-b'", "letters"]),
        (lambda run: run.checkpoint(1, state={"f": print}, force=True), ["f is a builtin_function_or_method"]),
        (lambda run: run.checkpoint(1, metrics={"loss": "x"}, force=True), ["metrics", "numbers"]),
        (lambda run: list(run.batches([], steps=3)), ["empty"]),
    ],
)
def test_wrong_input_is_reported(attempt, call, words):
    """Proves that a mistake is answered with what is wrong and where."""
    with pytest.raises(InputError) as caught:
        call(attempt())
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_component_that_is_not_there(attempt):
    """Proves that a request for what no checkpoint holds is an error with what it holds."""
    run = attempt()
    run.checkpoint(1, state={"values": {"n": 1}}, force=True, wait=True)
    run.finish()
    with pytest.raises(InputError, match="no `ema`; it holds .*`values`"):
        attempt(epoch=2).resume(ema={})


def test_forked_children_may_log(attempt, tmp_path):
    """Proves that a forked process records on its own, and that ending it as a pool does ends it."""
    import multiprocessing

    run = attempt()
    run.stop_on_sigterm()
    run.log(1, parent=1)
    try:
        context = multiprocessing.get_context("fork")
        child = context.Process(target=lambda: (run.log(2, child=1), run.event("in_child"), signal.pause()))
        child.start()
        while b"in_child" not in record_bytes(tmp_path):
            pass
        child.terminate()
        child.join(30)
        assert child.exitcode == -signal.SIGTERM
        run.finish()
        assert b"parent" in record_bytes(tmp_path) and b"child" in record_bytes(tmp_path)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_a_script_that_just_ends_keeps_its_checkpoint(tmp_path):
    """Proves that a checkpoint which is still being written when the script ends is finished first."""
    code = "import trackway; trackway.attach().checkpoint(7, state={'values': {'n': 1}}, force=True)"
    environment = {**os.environ, **attempt_environment(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert [one.state for one in checkpoint.list(tmp_path / "checkpoints")] == ["committed"]


def test_the_seed_of_the_run_file(monkeypatch):
    """Proves that generators are seeded by the run file's seed, by a number given instead, and alike each time."""

    def draw(*given):
        return trackway.seed(*given), random.random(), numpy.random.rand()

    monkeypatch.setenv("TRACKWAY_SEED", "17")
    assert draw() == draw(17) != draw(18)
    monkeypatch.delenv("TRACKWAY_SEED")
    assert draw() == draw(0) and draw(1 << 40)[0] == 1 << 40


def test_own_handlers_are_left_alone(tmp_path):
    """Proves that a script which handles SIGTERM itself continues to do so."""
    code = (
        "import os, signal, trackway\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('mine', flush=True))\n"
        "run = trackway.attach(); run.should_stop(); os.kill(os.getpid(), signal.SIGTERM); assert not run.should_stop()"
    )
    environment = {**os.environ, **attempt_environment(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == "mine\n"


def test_tags_artifacts_and_progressive_loss(attempt, tmp_path):
    """Proves that they are recorded, that a file may be gone right after the call, that nothing is raised for what
    cannot be kept, and that a loss of batches which were seen before is reported and not recorded."""
    run = attempt(TRACKWAY_ARTIFACTS=tmp_path / "artifacts")
    plot = tmp_path / "plot.svg"
    plot.write_text("a plot")
    run.tag("team", "search")
    run.artifact(plot, step=2)
    plot.unlink()
    run.artifact(plot, name="gone")
    run.artifact(None)
    run.artifact("\udcff\0")
    for step, loss in run.batches([0.5, 0.25], epochs=2):
        run.progressive(step, loss)
    run.finish()
    record = flight_record.read(tmp_path / "record-1")
    assert record.metric("progressive_loss") == {1: 0.5, 2: 0.25}
    assert record.kinds().count("progressive_seen_before") == 1
    reported = {kind: fields for kind, _, fields in record.events}
    assert reported["tag"] == {"name": "team", "value": "search"}
    assert reported["artifact"]["name"] == "plot.svg" and reported["artifact"]["size_bytes"] == "6"
    assert (tmp_path / "artifacts" / reported["artifact"]["blake3"]).read_text() == "a plot"
    failed = [fields["name"] for kind, _, fields in record.events if kind == "artifact_failed"]
    assert len(failed) == 3 and "gone" in failed


def test_an_empty_path_is_no_artifact(attempt, tmp_path, monkeypatch):
    """Proves that an empty path, which is the working directory to Python, keeps nothing and is reported with the reason."""
    place = tmp_path / "work"
    place.mkdir()
    (place / "data.csv").write_text("everything")
    monkeypatch.chdir(place)
    run = attempt(TRACKWAY_ARTIFACTS=tmp_path / "artifacts")
    run.artifact("")
    run.artifact("", name="plots", step=2)
    run.finish()
    events = flight_record.read(tmp_path / "record-1").events
    failed = [fields for kind, _, fields in events if kind == "artifact_failed"]
    assert [fields["why"] for fields in failed] == ["the path is empty"] * 2 and failed[1]["name"] == "plots"
    assert not any(kind == "artifact" for kind, _, _ in events)
    assert not list(tmp_path.glob("artifacts/*"))


FAILING = """
import threading, trackway
run = trackway.attach()
def fail(text):
    try:
        {}[text]
    except KeyError as error:
        raise ValueError(text) from error
thread = threading.Thread(target=fail, args=("in a thread",)); thread.start(); thread.join()
fail("at the end")
"""


def test_exceptions_are_reported(tmp_path):
    """Proves that what nothing catches is an event with a digest, in threads too, that the script ends as it would, and
    that the digest is the same the next time."""
    environment = {**os.environ, **attempt_environment(tmp_path)}
    (tmp_path / "fail.py").write_text(FAILING)
    for _ in range(2):
        command = [sys.executable, str(tmp_path / "fail.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.count("ValueError: ") == 2
    reported = [fields for kind, _, fields in flight_record.read(tmp_path / "record-1").events if kind == "exception"]
    assert [fields["message"] for fields in reported] == ["in a thread", "at the end"] * 2
    assert {fields["type"] for fields in reported} == {"ValueError"}
    assert reported[1]["trace"].splitlines()[0] == "caused by KeyError"
    assert reported[1]["trace"].splitlines()[-1].endswith("fail.py:8 fail")
    assert [reported[0]["digest"], reported[1]["digest"]] == [reported[2]["digest"], reported[3]["digest"]]
    assert reported[0]["digest"] != reported[1]["digest"]


def test_an_exception_is_reported_once(attempt, tmp_path):
    """Proves that one which leaves the run's own block, or cannot be made into a string, is reported once and passed on."""

    class Odd(Exception):
        def __str__(self):
            raise RuntimeError("no")

    run = attempt()
    with pytest.raises(Odd), run:
        try:
            raise Odd
        except Odd as error:
            run.exception(error)
            raise
    [(kind, _, fields)] = flight_record.read(tmp_path / "record-1").events
    assert kind == "exception" and fields["type"].endswith("Odd") and "cannot" in fields["message"]


def test_odd_names_values_and_steps(attempt, tmp_path):
    """Proves that names of any text, every float and steps in any order are kept, 10,000 names among them."""
    run = attempt()
    odd = {"": 1.0, "a\0b\n": math.nan, "😀": math.inf, "\udcff": -math.inf, "x" * 300: 5e-324, "-": -0.0}
    for step in (5, 2**64 - 1, 0, 4):
        run.log(step, odd)
    for number in range(10_000):
        run.log(number, {f"name {number}": number})
    run.finish()
    record = flight_record.read(tmp_path / "record-1")
    assert list(record.metric("")) == [5, 2**64 - 1, 0, 4]
    kept = {name: values[5] for name in record.names if 5 in (values := record.metric(name)) and name[:4] != "name"}
    assert set(kept) == {"", "a\0b\n", "😀", "\ufffd\ufffd\ufffd", "x" * 256, "-"}
    assert struct.pack("dd", kept["-"], kept["x" * 256]) == struct.pack("dd", -0.0, 5e-324)
    assert [record.metric(f"name {number}") for number in range(0, 10_000, 997)] == [
        {number: number} for number in range(0, 10_000, 997)
    ]


LOGGING = """
import sys, threading, trackway
run = trackway.attach()
def loop(first):
    for step in range(first, first + 1_000_000):
        run.log(step, loss=step, rate=0.5)
        if step % 50 == 0:
            sys.stdout.write(f"{step}\\n")
            sys.stdout.flush()
threading.Thread(target=loop, args=(1_000_000_000,), daemon=True).start()
loop(1)
"""


def test_a_killed_script_loses_no_point(tmp_path):
    """Proves that SIGKILL at random times loses no point of any thread whose call had returned."""
    kills = int(os.environ.get("TRACKWAY_TEST_KILLS", 5))
    draw = random.Random(int(os.environ.get("TRACKWAY_TEST_SEED", 1)))
    for epoch in range(1, kills + 1):
        environment = {**os.environ, **attempt_environment(tmp_path, epoch)}
        process = subprocess.Popen([sys.executable, "-c", LOGGING], env=environment, stdout=subprocess.PIPE, text=True)
        reported = [int(process.stdout.readline()) for _ in range(draw.randrange(1, 60))]
        time.sleep(draw.random() / 500)
        process.kill()
        process.wait()
        found = set(flight_record.read(tmp_path / f"record-{epoch}").metric("rate"))
        first = {step - step % 1_000_000_000 for step in reported}
        for base in first:
            last = max(step for step in reported if step - step % 1_000_000_000 == base)
            assert not set(range(base or 1, last + 1)) - found
    print(f"{kills} kills of a script that logs from two threads")


def test_stacks_are_written_when_asked_for(tmp_path):
    """Proves that the signal has the stacks of all threads written while the script waits, that a handler of the script's own
    is called too, that without the variable the signal keeps its meaning, and that an empty file does not stay."""
    script = tmp_path / "train.py"
    script.write_text(
        "import os, signal, sys, threading, time, trackway\n"
        "def wait_for_data():\n    time.sleep(100)\n"
        "if 'own' in sys.argv:\n    signal.signal(41, lambda *_: os.write(1, b'own handler\\n'))\n"
        "run = trackway.attach()\n"
        "if 'end' in sys.argv:\n    sys.exit()\n"
        "threading.Thread(target=wait_for_data, daemon=True).start()\n"
        "print('ready', flush=True)\n"
        "while True:\n    time.sleep(0.01)\n"
    )
    folder = tmp_path / "stacks"

    def start(*words, **more):
        environment = {**os.environ, **attempt_environment(tmp_path, **more)}
        return subprocess.Popen([sys.executable, script, *words], env=environment, stdout=subprocess.PIPE, text=True)

    for words, said in [((), ""), (("own",), "own handler\n")]:
        process = start(*words, TRACKWAY_STACKS=folder)
        assert process.stdout.readline() == "ready\n"
        process.send_signal(41)
        path = folder / f"{process.pid}.txt"
        deadline = time.monotonic() + 20
        while "Current thread" not in path.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not said or process.stdout.readline() == said
        assert process.poll() is None
        process.kill()
        process.wait()
        assert "in wait_for_data" in path.read_text()
        path.unlink()
    process = start()
    assert process.stdout.readline() == "ready\n"
    process.send_signal(41)
    assert process.wait() == -41
    assert start("end", TRACKWAY_STACKS=folder).wait() == 0
    assert list(folder.iterdir()) == []


def test_paths_of_data_sets_come_from_the_run_file(monkeypatch):
    """Proves that a script gets the path of a data set by its name, and the default or an error for another name."""
    run = trackway.attach()
    monkeypatch.delenv("TRACKWAY_DATA", raising=False)
    assert run.data("train", "mine.csv") == "mine.csv"
    with pytest.raises(KeyError, match=r"no `\[data.train\]`"):
        run.data("train")
    monkeypatch.setenv("TRACKWAY_DATA", '{"train": "/data/fold.csv"}')
    assert run.data("train", "mine.csv") == "/data/fold.csv"
