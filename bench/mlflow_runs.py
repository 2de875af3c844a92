#!/usr/bin/env python3
"""The peer of `bench.py reads`: the runs of a ledger in a SQLite store of MLflow, and MLflow's search over them.

Usage: mlflow_runs.py fill LEDGER STORE | mlflow_runs.py ask STORE FILTER ORDER
`ask` prints the seconds of searches inside the process, one a line: a page of 20 runs, as `trackway runs` shows.
"""

import sqlite3
import sys
import time

PAGE_RUNS = 20
REPEATS = 5


def client(store: str):
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{store}")


def fill(ledger: str, store: str) -> None:
    """Inserts runs, last values of metrics, parameters and tags with SQL: 50,000 calls of the client would take an hour."""
    experiment = client(store).search_experiments()[0].experiment_id
    database = sqlite3.connect(store)
    database.execute("ATTACH ? AS ledger", (ledger,))
    last = "attempt_id = (SELECT max(attempt_id) FROM ledger.{0} later WHERE later.run_id = it.run_id AND later.name = it.name)"
    states = "CASE state WHEN 'completed' THEN 'FINISHED' WHEN 'failed' THEN 'FAILED' ELSE 'RUNNING' END"
    database.execute(
        f"INSERT INTO runs (run_uuid, name, user_id, status, start_time, end_time, lifecycle_stage, artifact_uri, experiment_id, source_type) "
        f"SELECT run_id, name, '', {states}, created_at / 1000, ended_at / 1000, 'active', '', ?, 'UNKNOWN' FROM ledger.runs WHERE kind = 'train'",
        (experiment,),
    )
    values = "CASE WHEN abs(last_value) > 1e308 THEN 1e308 * sign(last_value) ELSE coalesce(last_value, 0) END"
    of = f"FROM ledger.metric_summaries it WHERE {last.format('metric_summaries')}"
    columns = "key, value, timestamp, step, is_nan, run_uuid"
    for table in ("latest_metrics", "metrics"):
        database.execute(
            f"INSERT INTO {table} ({columns}) SELECT name, {values}, 0, coalesce(last_step, 0), last_value IS NULL, run_id {of}"
        )
    for table, source in (("params", "parameters"), ("tags", "tags")):
        database.execute(
            f"INSERT INTO {table} (key, value, run_uuid) SELECT name, value, run_id FROM ledger.{source} it WHERE {last.format(source)}"
        )
    database.commit()
    database.execute("ANALYZE")


def ask(store: str, condition: str, order: str) -> None:
    api = client(store)
    experiments = [found.experiment_id for found in api.search_experiments()]
    for _ in range(REPEATS):
        start = time.perf_counter()
        api.search_runs(experiments, condition, max_results=PAGE_RUNS, order_by=[order] if order else None)
        print(time.perf_counter() - start)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["fill", ledger, store]:
            fill(ledger, store)
        case ["ask", store, condition, order]:
            ask(store, condition, order)
        case _:
            sys.exit(__doc__)
