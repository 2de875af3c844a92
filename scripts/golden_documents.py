#!/usr/bin/env python3
"""Picks the golden documents of crates/app/api/golden from documents that the tests of the binary printed.

    TRACKWAY_KEEP_DOCUMENTS=DIR cargo test -p trackway --test it
    scripts/golden_documents.py DIR

Of each document the one with the most fields that have a value is taken. Paths, hosts and addresses of the machine are
replaced. With names behind DIR only these documents are replaced.
"""

import json
import pathlib
import re
import socket
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "crates/app/api/golden"
# A golden document should be short enough to be read; a document that is always longer is taken at its shortest.
CHARACTERS_MAX = 24_000
ONE_PER_LINE = {"logs", "watch"}
REPLACED = [
    (re.compile(r"/tmp/\.tmp\w+"), "/home/tester/project"),
    (re.compile(re.escape(str(ROOT))), "/home/tester/trackway"),
    (re.compile(r"/[^\"\s']*/shared/data"), "/data"),
    (re.compile(r"/[^\"\s']*/debug/"), "/home/tester/trackway/target/debug/"),
    (re.compile(rf"\b{re.escape(socket.gethostname())}\b"), "host-1"),
]


def fields(value, path=""):
    """The paths of all fields that have a value."""
    if isinstance(value, dict):
        for key, member in value.items():
            if member not in (None, [], {}):
                yield f"{path}/{key}"
            yield from fields(member, f"{path}/{key}")
    elif isinstance(value, list):
        for item in value:
            yield from fields(item, path + "/*")


def neutral(value):
    """The document without anything of this machine."""
    if isinstance(value, dict):
        return {neutral(key): neutral(member) for key, member in value.items()}
    if isinstance(value, list):
        return [neutral(item) for item in value]
    if isinstance(value, str):
        for pattern, text in REPLACED:
            value = pattern.sub(text, value)
    return value


def documents(folder):
    """Every document of a folder; of those that are printed by line, every line."""
    for path in sorted(folder.glob("*.json")):
        text = path.read_text()
        texts = text.splitlines() if folder.name in ONE_PER_LINE else [text]
        for document in map(json.loads, texts):
            if document:
                yield json.dumps(neutral(document), indent=2, ensure_ascii=False) + "\n"


def richness(text):
    """The order of documents: short ones first by their number of fields, then the shortest."""
    is_short = len(text) <= CHARACTERS_MAX
    return is_short, len(set(fields(json.loads(text)))) if is_short else 0, -len(text)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    kept, names = pathlib.Path(sys.argv[1]), set(sys.argv[2:])
    GOLDEN.mkdir(exist_ok=True)
    for folder in sorted(kept.iterdir()):
        if names and folder.name not in names:
            continue
        best = max(documents(folder), key=richness, default=None)
        if best is not None:
            (GOLDEN / f"{folder.name}.json").write_text(best)
            print(f"{folder.name}: {len(best):,} characters")


if __name__ == "__main__":
    main()
