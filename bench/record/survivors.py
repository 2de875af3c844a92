"""How many steps of the first metric a tool gives back after its process was killed: `survivors.py TOOL FOLDER`.

Prints the number of steps. Each is read with the tool's reader; what only a repair brings back is counted too."""

import sqlite3
import struct
import sys
from pathlib import Path


def json_line(folder):
    return sum(line.endswith("}\n") for line in (folder / "log.jsonl").open())


def trackway(folder):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "crates/edges/python/tests"))
    import flight_record

    return len(flight_record.read(folder).metric("loss"))


def mlflow_file(folder):
    [path] = (folder / "store").glob("*/*/metrics/loss")
    return sum(1 for line in path.open() if len(line.split()) == 3)


def mlflow_sqlite(folder):
    connection = sqlite3.connect(folder / "mlflow.db")
    return connection.execute("select count(*) from metrics where key = 'loss'").fetchone()[0]


def wandb_offline(folder):
    from wandb.proto import wandb_internal_pb2

    [path] = folder.glob("wandb/offline-run-*/*.wandb")
    found = 0
    for data in _log_records(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        found += record.WhichOneof("record_type") == "history"
    return found


def _log_records(data, block_bytes=32768, head_bytes=7):
    """The whole records of a LevelDB log behind wandb's own header of seven bytes."""
    at, parts = head_bytes, []
    while at + head_bytes <= len(data):
        left = block_bytes - at % block_bytes
        if left < head_bytes:
            at += left
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        if kind == 0 or at + head_bytes + size > len(data):
            return
        parts.append(data[at + head_bytes : at + head_bytes + size])
        at += head_bytes + size
        if kind in (1, 4):  # whole, or the last part of one
            yield b"".join(parts)
            parts = []


def trackio(folder):
    [path] = folder.glob("*.db")
    connection = sqlite3.connect(path)
    return connection.execute("select count(*) from metrics").fetchone()[0]


def tensorboard(folder):
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    [path] = folder.glob("events.*")
    found = 0
    try:
        for event in EventFileLoader(str(path)).Load():
            found += any(value.tag == "loss" for value in event.summary.value)
    except Exception:  # a torn record ends what it reads
        pass
    return found


def dvclive(folder):
    return sum(1 for _ in (folder / "plots/metrics/loss.tsv").open()) - 1


if __name__ == "__main__":
    print(globals()[sys.argv[1].removesuffix("_named")](Path(sys.argv[2])))
