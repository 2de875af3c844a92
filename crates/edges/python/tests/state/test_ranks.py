"""Several ranks in real processes: they save together, go back together, and end together."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest
from conftest import attempt_environment, need, record_bytes

from trackway import InputError, Sharded, checkpoint
from trackway._state.ranks import put, rejoined

WORLD_SIZE = 4
STEPS = 60


@pytest.fixture(autouse=True)
def no_leftovers():
    """Ends the processes of a test that failed."""
    yield
    while Ranks.started:
        Ranks.started.pop().kill()


class Ranks:
    """The processes of one attempt."""

    started: list[subprocess.Popen] = []

    def __init__(self, folder, epoch, steps=STEPS, world_size=WORLD_SIZE, of_rank=None, **more):
        folder.mkdir(exist_ok=True)
        script = Path(__file__).parents[1] / "scripts/train_ranks.py"
        environment = {**os.environ, **attempt_environment(folder, epoch, WORLD_SIZE=world_size, **more)}
        command = [sys.executable, str(script), str(steps), str(folder)]
        self.processes = [
            subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True,
                env={**environment, "RANK": str(rank), **(of_rank or {}).get(rank, {})},
            )
            for rank in range(world_size)
        ]
        Ranks.started += self.processes

    def words_of(self, rank, count):
        return [self.processes[rank].stdout.readline().split() for _ in range(count)]

    def kill(self):
        for process in self.processes:
            process.kill()
            process.communicate()

    def finish(self):
        """What each rank printed, as words by the first word of each line; of an ordinary step the last one."""
        # All at once: a rank that waits for room in its pipe keeps the others waiting.
        with ThreadPoolExecutor(len(self.processes)) as pool:
            outputs = list(pool.map(lambda process: process.communicate(timeout=120)[0], self.processes))
        assert [process.returncode for process in self.processes] == [0] * len(self.processes), outputs
        return [{line.split()[0]: line.split()[1:] for line in output.splitlines()} for output in outputs]


def one(values):
    """The value that all have alike."""
    values = [tuple(value) for value in values]
    assert len(set(values)) == 1, values
    return values[0]


def states(folder):
    return [(found.step, found.state) for found in checkpoint.list(folder / "checkpoints")]


def test_kills_of_any_rank(tmp_path):
    """Proves with SIGKILLs of any rank at random times, by cadences of steps and of time, that no committed
    checkpoint is torn, that all ranks continue from the same step, and that each ends as if nothing had happened."""
    seed = int(os.environ.get("TRACKWAY_TEST_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    kills = int(os.environ.get("TRACKWAY_TEST_KILLS", "4"))
    print(f"seed {seed}")
    rng = random.Random(seed)
    whole = [found["digest"] for found in Ranks(tmp_path / "whole", 1).finish()]
    for epoch in range(1, kills + 1):
        cadence = rng.choice([{"TRACKWAY_CHECKPOINT_EVERY_STEPS": 3}, {"TRACKWAY_CHECKPOINT_EVERY_SECONDS": 0.05}])
        ranks = Ranks(tmp_path, epoch, TRACKWAY_GRACE_SECONDS=1, **cadence)
        first = [ranks.words_of(rank, 2) for rank in range(WORLD_SIZE)]
        one([words[1] for words in first])
        victim = rng.randrange(WORLD_SIZE)
        ranks.words_of(victim, rng.randrange(0, 12))
        time.sleep(rng.random() * 0.05)
        ranks.processes[victim].send_signal(signal.SIGKILL)
        time.sleep(rng.choice([0, 0.1]))
        ranks.kill()
        problems = checkpoint.verify(tmp_path / "checkpoints")
        assert all(problem is None for problem in problems.values()), (seed, problems)
    found = Ranks(tmp_path, kills + 1).finish()
    assert [rank["digest"] for rank in found] == whole, seed


@pytest.mark.parametrize("reported", [[0, 1, 2, 3], [2]], ids=["all", "one"])
def test_a_stop_ends_all_at_one_step(tmp_path, reported):
    """Proves that SIGTERM, also to one rank only, ends all of them at the same step with one checkpoint of it."""
    ranks = Ranks(tmp_path, 1, steps=100_000, TRACKWAY_GRACE_SECONDS=30, TRACKWAY_CHECKPOINT_EVERY_STEPS=1_000_000)
    for rank in range(WORLD_SIZE):
        ranks.words_of(rank, 7)
    for rank in reported:
        ranks.processes[rank].send_signal(signal.SIGTERM)
    last = one([found["last"] for found in ranks.finish()])
    assert states(tmp_path) == [(int(last[0]), "committed")]


def test_a_slow_rank_costs_checkpoints_only(tmp_path):
    """Proves that ranks train on while one of them is held in a save: what comes due is skipped, which is recorded,
    no rank waits in the loop, and the stop that releases it ends all of them with a checkpoint."""
    held = {1: {"TRACKWAY_HOLD_IN_SAVE": "3"}}
    ranks = Ranks(tmp_path, 1, steps=100_000, of_rank=held, TRACKWAY_CHECKPOINT_EVERY_STEPS=3)
    for rank in range(WORLD_SIZE):
        assert ranks.words_of(rank, 22)[-1] == ["20"]
    ranks.processes[1].send_signal(signal.SIGTERM)
    last = one([found["last"] for found in ranks.finish()])
    real = [step for step, state in states(tmp_path) if state in ("superseded", "committed")]
    assert real[0] == 3 and real[-1] == int(last[0])
    assert record_bytes(tmp_path).count(b"checkpoint_skipped") >= WORLD_SIZE


def test_what_is_saved_once_and_what_by_each(tmp_path):
    """Proves which files a checkpoint of ranks has, and that loading it without a run shows all of them."""
    Ranks(tmp_path, 1, steps=4, world_size=2, TRACKWAY_CHECKPOINT_EVERY_STEPS=4).finish()
    files = sorted(path.name for path in (tmp_path / "checkpoints").glob("step-*/*/*.*"))
    own = [f"rank-000{rank}-{name}" for rank in (0, 1) for name in ("cursor.json", "rng.json", "shard.json")]
    own += [f"rank-000{rank}-shard.safetensors" for rank in (0, 1)]
    assert files == sorted([*own, "manifest.json", "weights.json", "weights.safetensors"])
    assert set(checkpoint.load(tmp_path / "checkpoints")) >= {"weights", "rank-0001-shard"}
    assert checkpoint.list(tmp_path / "checkpoints")[0].state == "committed"


def test_another_number_of_ranks(tmp_path):
    """Proves that what all have alike is there for any number of ranks, that shards are joined and distributed again,
    and that the record contains that generators and the place in the data start over."""
    before = Ranks(tmp_path, 1, steps=5, world_size=2).finish()
    for epoch, world_size in ((2, 3), (3, 1), (4, 2)):
        after = Ranks(tmp_path, epoch, steps=0, world_size=world_size).finish()
        assert one([rank["from"] for rank in after]) == ("6",)
        assert one([rank["shared"] for rank in [*before, *after]])
        rows, rows_before = (sum(float(rank["rows"][0]) for rank in ranks) for ranks in (after, before))
        assert rows == pytest.approx(rows_before)
        reported = b"resume_without_place" in record_bytes(tmp_path, epoch)
        assert reported == (world_size != 2)


def test_parts_are_put_in_place():
    """Proves that rejoined parts fill objects, dicts and their tensors in place, and the error without `rejoin`."""

    class Counter:
        def __init__(self):
            self.count = 0

        def state_dict(self):
            return {"count": self.count}

        def load_state_dict(self, state):
            self.count = state["count"]

    counter, rows = Counter(), numpy.zeros(2)
    assert put(counter, {"count": 3}, "counter") is counter and counter.count == 3
    table = {"rows": rows, "old": 1, "n": 0}
    assert put(table, {"rows": numpy.ones(2), "n": 5}, "table") is table
    assert table["rows"] is rows and rows.sum() == 2 and table["n"] == 5 and "old" not in table
    assert put(4, 5, "number") == 5
    with pytest.raises(InputError, match="`table` was saved in 2 parts, but there are 3 ranks now; .*`rejoin`"):
        rejoined("table", Sharded(table), [{}, {}], 0, 3)


def test_contradicting_variables_are_reported(attempt):
    """Proves that a rank without a number of ranks gets an error when it resumes, not when it attaches."""
    run = attempt(RANK=1)
    with pytest.raises(InputError, match="`WORLD_SIZE` is ``"):
        run.resume()


@pytest.mark.parametrize(
    ("rank", "size"),
    [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"), ("SLURM_PROCID", "WORLD_SIZE")],
)
def test_launchers_other_than_torchrun(attempt, rank, size):
    """Proves that the rank comes from the variables of another launcher, and that `WORLD_SIZE` alone is refused."""
    run = attempt(**{rank: 2, size: 3})
    if size != "WORLD_SIZE":
        assert run._ranks == (2, 3)
        return
    with pytest.raises(InputError, match="`RANK` is ``: set both"):
        run.resume()


def test_data_parallel_torch(tmp_path):
    """Proves with torchrun, gloo and DistributedDataParallel that a killed run ends as one that was not."""
    need("torch")
    script = Path(__file__).parents[1] / "scripts/train_ddp.py"

    def train(folder, epoch, steps, kill_at=None):
        folder.mkdir(exist_ok=True)
        environment = {**os.environ, **attempt_environment(folder, epoch, TRACKWAY_CHECKPOINT_EVERY_STEPS=3)}
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        process = subprocess.Popen(
            [*command, str(script), str(steps), *([] if kill_at is None else [str(kill_at)])],
            env={**environment, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        lines = []
        for line in process.stdout:
            lines.append(line)
            if kill_at is not None and line == f"step {kill_at}\n":
                workers = [int(line.split()[1]) for line in lines if line.startswith("pid")]
                for pid in [process.pid, *workers]:
                    os.kill(pid, signal.SIGKILL)
        return process.wait(120), sorted(line for line in lines if line.startswith("digest"))

    ended, whole = train(tmp_path / "whole", 1, 14)
    assert ended == 0 and len(whole) == 2
    assert train(tmp_path, 1, 14, kill_at=8) == (-signal.SIGKILL, [])
    assert train(tmp_path, 2, 14) == (0, whole)
    assert [step for step, _ in states(tmp_path)] == [3, 6, 9, 12, 14]
