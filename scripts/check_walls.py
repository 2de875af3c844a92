#!/usr/bin/env python3
"""Proves the dependency walls and the layer order of ARCHITECTURE.md with `cargo metadata` and `cargo tree`.

Fails when a crate uses one listed after it, when a walled crate pulls a forbidden package, when two versions of a
package that must be single are in the tree, or when ARCHITECTURE.md and crates/ disagree about which crates exist.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# From the ground floor up: a crate may use only crates listed before it.
LAYERS = [
    "core", "system", "files", "redact", "statistics", "formats", "store", "checkpoint", "recorder", "python", "ledger", "data", "evaluate", "tower", "launch", "app", "cli",
]
# The edges: nobody uses them, and so they do not use each other.
EDGES = {"python", "cli"}

HEAVY = r"datafusion|arrow|parquet|axum|hyper|tokio|rusqlite|postgres|rustls|openssl-sys|object_store|reqwest"
# crate -> packages that must not be reachable from it (normal dependencies only).
FORBIDDEN = {
    "trackway-core": HEAVY,
    "trackway-system": HEAVY,
    "trackway-files": HEAVY,
    "trackway-redact": HEAVY,
    "trackway-statistics": HEAVY,
    "trackway-formats": HEAVY,
    "trackway-store": HEAVY,
    "trackway-checkpoint": HEAVY,
    "trackway-recorder": HEAVY,
    "trackway-python": HEAVY,
    "trackway-tower": HEAVY + r"|nix|libc",
    "trackway-launch": r"datafusion|arrow|parquet|axum|hyper|rusqlite|postgres",
    "trackway-app": r"axum|clap|indicatif",
}
SINGLE = ["arrow-schema", "parquet", "object_store", "libsqlite3-sys", "rustls", "ring", "reqwest", "tokio"]


def cargo(*arguments: str) -> str:
    return subprocess.run(
        ["cargo", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


def packages_below(crate: str) -> set[str]:
    lines = cargo("tree", "--locked", "-p", crate, "-e", "normal", "--prefix", "none").splitlines()
    return {line.split()[0] for line in lines if line.strip()}


def layer_faults() -> list[str]:
    metadata = json.loads(cargo("metadata", "--locked", "--no-deps", "--format-version", "1"))
    layer_of = {}
    for package in metadata["packages"]:
        folder = Path(package["manifest_path"]).parent
        if folder.parent.name == "crates":
            layer_of[package["name"]] = folder.name
    faults = [f"crates/{name} is in no layer: list it in {Path(__file__).name}"
              for name in sorted(set(layer_of.values()) - set(LAYERS))]
    for package in metadata["packages"]:
        here = layer_of.get(package["name"])
        for dependency in package["dependencies"]:
            there = layer_of.get(dependency["name"])
            if here in LAYERS and there in LAYERS and LAYERS.index(there) >= LAYERS.index(here):
                faults.append(f"{here} uses {there}, which stands above it")
            if here in LAYERS and there in EDGES:
                faults.append(f"{here} uses {there}, which is an edge")
    return faults


def wall_faults() -> list[str]:
    faults = []
    for crate, pattern in FORBIDDEN.items():
        matcher = re.compile(rf"^({pattern})(-|$)")
        found = sorted(name for name in packages_below(crate) if matcher.match(name))
        faults += [f"{crate} reaches {name}" for name in found]
    return faults


def version_faults() -> list[str]:
    lines = cargo("tree", "--locked", "--workspace", "-e", "normal", "--prefix", "none").splitlines()
    versions: dict[str, set[str]] = {}
    for line in lines:
        words = line.split()
        if len(words) > 1:
            versions.setdefault(words[0], set()).add(words[1])
    return [f"{name} is in the tree in versions {', '.join(sorted(versions[name]))}"
            for name in SINGLE if len(versions.get(name, ())) > 1]


def map_faults() -> list[str]:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `crates/([a-z]+)`", text, re.MULTILINE))
    present = {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")}
    return ([f"ARCHITECTURE.md does not list crates/{name}" for name in sorted(present - listed)]
            + [f"ARCHITECTURE.md lists crates/{name}, which does not exist" for name in sorted(listed - present)])


def main() -> int:
    faults = layer_faults() + wall_faults() + version_faults() + map_faults()
    for fault in faults:
        print(f"wall: {fault}", file=sys.stderr)
    print(f"walls: {len(FORBIDDEN)} crates, {len(LAYERS)} layers, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
