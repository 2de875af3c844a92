#!/usr/bin/env python3
"""Measures Trackway beside the floor and the tools a user would pick instead, in one run, and prints ratios.

Usage: bench/run.sh [overhead] [logs] [output] [sql] [reads] [classify] [record]
Every figure is the median of repeated runs; the spread (10th to 90th percentile) is beside it.
"""

import argparse
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

A4 = """select termination_reason, count(*) as attempts, sum(gpu_seconds) / 3600 as gpu_hours
from training_attempts where model_family = 'reasoning' and started_at >= now() - interval '7 days'
group by termination_reason order by gpu_hours desc;"""

READ_RUNS = 50_000
READ_METRICS = 12
READ_REPEATS = 15
# What one page may take.
AIM_SECONDS = 0.030
AIM_BYTES = 60e6
# What `reads` measures: conditions that many runs, few runs and no run meet; orders by a metric, by columns and by a parameter. Beside
# it the filter and the order with which MLflow answers the same question, where it can.
READS = [
    (["--version"], None),
    (["runs"], ("", "attributes.start_time DESC")),
    (["runs", "--json"], None),
    (["runs", "--limit", "1000"], None),
    (["runs", "--after", "{run}"], None),
    (["runs", "--sort", "val_loss"], ("", "metrics.val_loss ASC")),
    (["runs", "--sort", "-max.loss"], None),
    (["runs", "--sort", "epoch"], ("", "metrics.epoch ASC")),
    (["runs", "--sort", "wall_seconds"], None),
    (["runs", "--sort", "state"], ("", "attributes.status ASC")),
    (["runs", "--sort", "name"], ("", "attributes.run_name ASC")),
    (["runs", "--sort", "param.lr"], ("", "params.lr ASC")),
    (["runs", "--where", "val_loss < 0.3"], ("metrics.val_loss < 0.3", "attributes.start_time DESC")),
    (["runs", "--where", "val_loss < -0.9999"], ("metrics.val_loss < -0.9999", "attributes.start_time DESC")),
    (["runs", "--where", "val_loss < -7"], ("metrics.val_loss < -7", "attributes.start_time DESC")),
    (["runs", "--where", "state = 'failed' and wall_seconds > 35990"], None),
    (["runs", "--where", "param.lr > 0.015"], None),
    (["runs", "--where", "param.optimizer = 'adam' and val_loss < 0.3", "--sort", "val_loss"],
     ("params.optimizer = 'adam' and metrics.val_loss < 0.3", "metrics.val_loss ASC")),
    (["runs", "--where", "val_loss < 0.3", "--sort", "-val_loss"], ("metrics.val_loss < 0.3", "metrics.val_loss DESC")),
    (["attempts"], None),
    (["explain", "last"], None),
]


def seconds_of(command: list[str], repeats: int, environment: dict[str, str] | None = None) -> list[float]:
    """Wall seconds of `repeats` runs after two warm-up runs; output is thrown away, a failure ends the benchmark."""
    taken = []
    for number in range(repeats + 2):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        if number >= 2:
            taken.append(time.perf_counter() - start)
    return taken


def row(name: str, taken: list[float], floor: float | None = None) -> float:
    median = statistics.median(taken)
    spread = statistics.quantiles(taken, n=10) if len(taken) > 1 else [median] * 9
    ratio = f"{median / floor:8.1f} x" if floor else "   floor  "
    print(f"  {name:<44} {median * 1e3:9.2f} ms  [{spread[0] * 1e3:.2f} .. {spread[-1] * 1e3:.2f}]  {ratio}")
    return median


def overhead(binary: Path) -> None:
    """`trackway run -- true` over `true`, with the ledger on disk."""
    print("\noverhead of supervising a command (ledger on disk)")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TRACKWAY_HOME": f"{folder}/home"}
        floor = row("true (fork and exec)", seconds_of(["true"], 50))
        row("sh -c true", seconds_of(["sh", "-c", "true"], 50), floor)
        row("python3 -c pass", seconds_of(["python3", "-c", "pass"], 20), floor)
        row("trackway --version", seconds_of([str(binary), "--version"], 30), floor)
        row("trackway run -- true", seconds_of([str(binary), "run", "--", "true"], 50, environment), floor)


def cpu_seconds_by_role(binary: Path) -> dict[str, float]:
    """CPU seconds so far of every live process of this binary: the supervisor and the shim apart."""
    ticks = os.sysconf("SC_CLK_TCK")
    found: dict[str, float] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "exe") != str(binary):
                continue
            command = (process / "cmdline").read_bytes()
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        role = "shim" if b"__shim" in command else "supervisor"
        found[role] = found.get(role, 0.0) + (int(fields[11]) + int(fields[12])) / ticks
    return found


def logs(binary: Path) -> None:
    """CPU seconds of supervisor and shim while a script prints 1,000 lines a second for ten seconds."""
    print("\nCPU while a script prints 1,000 lines/s for 10 s")
    script = ("import sys,time\nstart=time.perf_counter()\n"
              "for i in range(10000):\n"
              "    print(f'step {i} loss {1/(i+1):.6f} lr 0.001 tokens/s 12345')\n"
              "    if i % 10 == 9:\n"
              "        time.sleep(max(0, start + (i+1)/1000 - time.perf_counter()))\n"
              "time.sleep(2)\n")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TRACKWAY_HOME": f"{folder}/home"}
        process = subprocess.Popen([str(binary), "run", "--", "python3", "-u", "-c", script], env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(11)
        for role, seconds in sorted(cpu_seconds_by_role(binary).items()):
            print(f"  {role:<44} {seconds:9.2f} CPU s in 11 s = {100 * seconds / 11:.1f} % of a core")
        if process.wait() != 0:
            raise SystemExit("the run failed")


# How much is printed in `output`, and of what: the more a line may mean, the more it costs.
OUTPUT_BYTES = 200_000_000
OUTPUT_KINDS = {
    "lines of 80 letters, no number": lambda at: "the quick brown fox jumps over the lazy dog while other animals look at the scene\n",
    "lines of a log with numbers": lambda at: f"2026-01-02 10:02:03,{at % 1000:03} INFO worker {at % 8} fetched batch {at} of shard {at // 100}\n",
    "a step and a loss in each line": lambda at: f"step {at} loss {1 / (1 + at):.6f}\n",
    "a JSON object in each line": lambda at: f'{{"step": {at}, "loss": {1 / (1 + at):.6f}, "lr": 0.001}}\n',
    "a progress bar that draws over itself": lambda at: f"\rEpoch 1/3:  50%|#####     | {at % 10**6}/1000000 [00:00<00:00, 48.17it/s]",
    "lines of one letter": lambda at: "y\n",
    "one line": lambda at: "x" * 100,
}


# What Python itself prints, line by line: the script makes its lines while they are read.
PRINTED_LINES = 2_000_000
PRINTED_BY_PYTHON = {
    "a step and a loss in each line": "for n in range({n}): print(f'step {{n}} loss {{1 / (1 + n):.6f}}')",
    "a JSON object in each line": "import json\nfor n in range({n}): print(json.dumps({{'step': n, 'loss': 1 / (1 + n), 'lr': 0.001}}))",
    "a progress bar that draws over itself": "for n in range({n}): print(f'\\rEpoch 1/3:  50%|#####     | {{n}}/2000000 [00:00<00:00, 48.17it/s]', end='')",
}


def output(binary: Path, size_bytes: int = OUTPUT_BYTES) -> None:
    """A script that prints as fast as it can, beside the same script through `tee`. What is printed is kept in a file and shown nowhere."""
    print(f"\n{size_bytes / 1e6:.0f} MB of output, beside `tee`; a run ends when its receipt is sealed")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TRACKWAY_HOME": f"{folder}/home"}
        for name, line in OUTPUT_KINDS.items():
            printed, kept = Path(folder) / "printed", Path(folder) / "kept"
            with open(printed, "w", encoding="utf-8") as file:
                at, left = 0, size_bytes
                while left > 0:
                    text = "".join(line(number) for number in range(at, at + 10_000))
                    file.write(text)
                    at, left = at + 10_000, left - len(text)
            size = printed.stat().st_size
            tee = min(seconds_of(["sh", "-c", f"cat {printed} | tee {kept} > /dev/null"], 3))
            run = min(seconds_of([str(binary), "run", "--", "cat", str(printed)], 1, environment))
            print(f"  {name:<44} tee {size / tee / 1e6:6.0f} MB/s, trackway run {size / run / 1e6:6.0f} MB/s: {run / tee:6.1f} x")
            shutil.rmtree(f"{folder}/home")
        print(f"  {PRINTED_LINES} lines that Python makes and prints; Trackway lets it print each at once")
        for name, text in PRINTED_BY_PYTHON.items():
            script, kept = Path(folder) / "script.py", Path(folder) / "kept"
            script.write_text(text.format(n=PRINTED_LINES), encoding="utf-8")
            tee = min(seconds_of(["sh", "-c", f"{sys.executable} {script} | tee {kept} > /dev/null"], 2))
            run = min(seconds_of([str(binary), "run", "--", sys.executable, str(script)], 1, environment))
            print(f"  {name:<44} tee {PRINTED_LINES / tee / 1e6:6.2f}, trackway run {PRINTED_LINES / run / 1e6:6.2f} million lines/s: {run / tee:6.1f} x")
            shutil.rmtree(f"{folder}/home")


def sql(binary: Path, target: Path) -> None:
    """The A4 query on 100,000 attempts, whole process."""
    print("\nA4 query on 100,000 attempts, whole process")
    with tempfile.TemporaryDirectory() as folder:
        ledger = f"{folder}/ledger.db"
        subprocess.run([str(target / "examples/fill_ledger"), ledger, "100000"], check=True, stdout=subprocess.DEVNULL)
        same = ("select termination_reason, count(*), sum(gpu_seconds)/3600 from training_attempts where "
                "model_family='reasoning' and started_at >= (strftime('%s','now')-604800)*1000000 group by 1 order by 3 desc")
        floor = row("python sqlite3, same question, inside the process", in_sqlite(ledger, same))
        if shutil.which("sqlite3"):
            row("sqlite3 command line", seconds_of(["sqlite3", ledger, same], 10), floor)
        row("python3 + sqlite3, whole process",
            seconds_of(["python3", "-c", f"import sqlite3;sqlite3.connect({ledger!r}).execute({same!r}).fetchall()"], 10),
            floor)
        row("trackway sql, whole process",
            seconds_of([str(binary), "--home", folder, "--ledger", ledger, "sql", A4], 20), floor)


def process_figures(command: list[str], repeats: int) -> tuple[list[float], float, float]:
    """Wall seconds of `repeats` runs, the least CPU seconds of one, and the most memory that one held, mapped files included."""
    walls, cpu, peak = [], float("inf"), 0.0
    for number in range(repeats + 2):
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise SystemExit(f"failed: {' '.join(command)}")
        if number >= 2:
            walls.append(time.perf_counter() - start)
        cpu = min(cpu, usage.ru_utime + usage.ru_stime)
        peak = max(peak, usage.ru_maxrss * 1024.0)
    return walls, cpu, peak


def reads(binary: Path, target: Path, mlflow: str | None) -> None:
    """Pages of runs and a page of one run, whole process, beside the aim and MLflow's search inside its process."""
    print(f"\nreading a ledger of {READ_RUNS:,} runs and about {READ_RUNS * READ_METRICS:,} metric summaries, whole process")
    with tempfile.TemporaryDirectory() as folder:
        ledger, store = f"{folder}/ledger.db", f"{folder}/mlflow.db"
        fill = [str(target / "examples/fill_runs"), ledger, str(READ_RUNS), str(READ_METRICS), str(int(time.time()))]
        subprocess.run(fill, check=True, stdout=subprocess.DEVNULL)
        print(f"  {os.path.getsize(ledger) / 2**20:.0f} MiB in SQLite")
        peer = [mlflow, str(Path(__file__).parent / "mlflow_runs.py")] if mlflow else None
        if peer:
            subprocess.run([*peer, "fill", ledger, store], check=True, stderr=subprocess.DEVNULL)
            print(f"  {os.path.getsize(store) / 2**20:.0f} MiB in MLflow's SQLite store")
        run = sqlite3.connect(ledger).execute("SELECT run_id FROM runs ORDER BY created_at DESC LIMIT 1 OFFSET 5000").fetchone()[0]
        print(f"  aim: {AIM_SECONDS * 1e3:.0f} ms and {AIM_BYTES / 1e6:.0f} MB, the program's start included")
        print(f"  {'':<76} {'least':>8} {'median':>8} {'CPU':>8} {'of aim':>7} {'peak':>9} {'of aim':>7} {'MLflow':>11}")
        for arguments, question in READS:
            words = [word.format(run=run) for word in arguments]
            walls, cpu, peak = process_figures([str(binary), "--home", folder, "--ledger", ledger, *words], READ_REPEATS)
            least, median = min(walls), statistics.median(walls)
            beside = mlflow_ratio(peer, store, question, median) if peer and question else ""
            print(f"  {'trackway ' + ' '.join(arguments):<76} {least * 1e3:5.1f} ms {median * 1e3:5.1f} ms {cpu * 1e3:5.1f} ms "
                  f"{median / AIM_SECONDS:5.2f} x {peak / 1e6:6.1f} MB {peak / AIM_BYTES:5.2f} x {beside}")


def mlflow_ratio(peer: list[str], store: str, question: tuple[str, str], median: float) -> str:
    """The median of MLflow's searches, without its start, and how often that is what Trackway takes with its start."""
    asked = subprocess.run([*peer, "ask", store, *question], check=True, capture_output=True, text=True)
    seconds = statistics.median(float(line) for line in asked.stdout.split())
    return f"{seconds * 1e3:7.0f} ms, {seconds / median:.0f} x"


def in_sqlite(ledger: str, query: str) -> list[float]:
    connection = sqlite3.connect(ledger)
    taken = []
    for _ in range(10):
        start = time.perf_counter()
        connection.execute(query).fetchall()
        taken.append(time.perf_counter() - start)
    return taken


def classify(binary: Path, target: Path) -> None:
    """All signatures over 1 GB of log, in one pass."""
    print("\nclassification of a 1 GB log")
    subprocess.run([str(target / "examples/scan_throughput")], check=True)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "train.log"
        line = "step {0} loss 0.123456 lr 0.001 throughput 1234.5 tokens/s gpu_memory 71.2 GiB epoch 3\n"
        block = "".join(line.format(number) for number in range(10_000)).encode()
        with log.open("wb") as file:
            while file.tell() < 1_000_000_000:
                file.write(block)
        size = log.stat().st_size
        floor = row("cat > /dev/null", seconds_of(["sh", "-c", f"cat {log} > /dev/null"], 3))
        row("grep -c for one word", seconds_of(["sh", "-c", f"LC_ALL=C grep -c OutOfMemory {log} || true"], 3), floor)
        taken = row("trackway classify --log", seconds_of([str(binary), "classify", "--log", str(log)], 3), floor)
        print(f"  {size / taken / 1e6:.0f} MB/s")


def record(target: Path) -> None:
    """Latency of one `log` call with ten metrics, and the memory that closing a long record takes."""
    print("\nflight record: one log call with ten metrics")
    subprocess.run([str(target / "examples/log_latency")], check=True)
    print("\nflight record: closing it, read from the segments for a search before")
    for points in (10_000_000, 100_000_000):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([str(target / "examples/close_record"), folder, str(points)], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=Path("target/quick"))
    parser.add_argument("--mlflow", help="a Python with mlflow-skinny, SQLAlchemy and alembic: `reads` compares with its search")
    parser.add_argument("which", nargs="*")
    options = parser.parse_args()
    binary = (options.target / "trackway").resolve()
    target = options.target.resolve()
    wanted = options.which or ["overhead", "logs", "output", "sql", "reads", "classify", "record"]
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
    for name in wanted:
        match name:
            case "overhead":
                overhead(binary)
            case "logs":
                logs(binary)
            case "output":
                output(binary)
            case "sql":
                sql(binary, target)
            case "reads":
                reads(binary, target, options.mlflow)
            case "classify":
                classify(binary, target)
            case "record":
                record(target)
            case _:
                parser.error(f"no benchmark `{name}`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
