#!/usr/bin/env python3
"""Proves the dependency walls and the layers of ARCHITECTURE.md with `cargo metadata` and `cargo tree`.

Fails when a crate uses one that its layer may not use, or one listed after it, when a walled crate pulls a forbidden package,
when two versions of a package that must be single are in the tree, when ARCHITECTURE.md and crates/ disagree about which crates
exist, when a layer's README.md does not name what the layer may use, or when HTML is written outside of crates/app/pages.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The folders of crates/, and in each the crates from the bottom up: a crate may use only crates listed before it.
LAYERS = {
    "base": ["skip", "no-schema", "schema", "core", "system", "files", "redact", "formats"],
    "storage": ["store", "layouts", "checkpoint", "ledger", "records", "sql"],
    "science": ["statistics", "results", "tables", "data", "evaluate"],
    "decide": ["rules"],
    "run": ["recorder", "adopt", "launch"],
    "app": ["api", "engine", "flows", "inspect", "pages"],
    "edges": ["agent", "python", "server", "cli"],
}
# The layers that a layer may use beside itself. The edges use each other in no case.
MAY_USE = {
    "base": [],
    "storage": ["base"],
    "science": ["base"],
    "decide": ["base", "science"],
    "run": ["base", "storage"],
    "app": ["base", "storage", "science", "decide", "run"],
    "edges": ["base", "storage", "science", "decide", "run", "app"],
}
EDGES = LAYERS["edges"]
# Crates that will exist: their place and their walls are decided already.
PLANNED = {"server"}
LAYER_OF = {crate: layer for layer, crates in LAYERS.items() for crate in crates}

HEAVY = r"datafusion|arrow|parquet|axum|hyper|tokio|rusqlite|postgres|rustls|openssl-sys|object_store|reqwest"
# What runs in the training process: no schemas either.
TRAINING = HEAVY + r"|schemars"
# crate -> packages that must not be reachable from it (normal dependencies only).
FORBIDDEN = {
    "trackway-core": HEAVY,
    "trackway-system": HEAVY,
    "trackway-files": HEAVY,
    "trackway-redact": HEAVY,
    "trackway-statistics": HEAVY,
    "trackway-results": HEAVY,
    "trackway-tables": r"datafusion|axum|hyper|tokio|rusqlite|postgres|rustls|object_store|reqwest|image",
    "trackway-formats": TRAINING,
    "trackway-store": TRAINING,
    "trackway-layouts": TRAINING,
    "trackway-checkpoint": TRAINING,
    "trackway-recorder": TRAINING,
    "trackway-adopt": TRAINING,
    "trackway-python": TRAINING,
    "trackway-agent": TRAINING + r"|clap|nvml-wrapper|zstd|ring",
    "trackway-ledger": r"datafusion|arrow|parquet|axum|object_store",
    "trackway-records": r"datafusion|axum|object_store",
    "trackway-rules": HEAVY + r"|nix|libc",
    "trackway-launch": r"datafusion|arrow|parquet|axum|hyper|rusqlite|postgres",
    # The contract: a client of it reads answers, and computes none.
    "trackway-api": r"datafusion|arrow|parquet|tokio|object_store|axum|clap|indicatif|maud",
    "trackway-engine": r"datafusion|axum|clap|indicatif",
    "trackway-flows": r"axum|clap|indicatif",
    "trackway-inspect": r"axum|clap|indicatif",
    "trackway-pages": r"axum|clap|indicatif",
    "trackway-server": r"clap|indicatif",
}
# The crate that writes HTML, and what HTML looks like in the others.
PAGES = ROOT / "crates" / "app" / "pages" / "src"
MARKUP = re.compile(r"<(?:!doctype html|html|body|div|table|t[dhr]|svg|h[1-6]|style)[ >]|\bmaud::|\bPreEscaped\b")
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
    crate_of, faults = {}, []
    for package in metadata["packages"]:
        folder = Path(package["manifest_path"]).parent
        if folder.parent.parent.name == "crates":
            crate_of[package["name"]] = folder.name
            if LAYER_OF.get(folder.name) != folder.parent.name:
                faults.append(f"crates/{folder.parent.name}/{folder.name} is in no layer: list it in {Path(__file__).name}")
    order = list(LAYER_OF)
    faults += [f"{crate} exists: it is not planned any more" for crate in PLANNED & set(crate_of.values())]
    for package in metadata["packages"]:
        here = crate_of.get(package["name"])
        for dependency in package["dependencies"]:
            there = crate_of.get(dependency["name"])
            if here not in LAYER_OF or there not in LAYER_OF or here == there:
                continue
            if there in EDGES:
                faults.append(f"{here} uses {there}, which is an edge")
            elif LAYER_OF[here] == LAYER_OF[there]:
                if order.index(there) > order.index(here):
                    faults.append(f"{here} uses {there}, which is listed after it")
            elif LAYER_OF[there] not in MAY_USE[LAYER_OF[here]]:
                faults.append(f"{here} uses {there}: {LAYER_OF[here]} may not use {LAYER_OF[there]}")
    return faults


def wall_faults() -> list[str]:
    faults = []
    for crate, pattern in FORBIDDEN.items():
        if crate.removeprefix("trackway-") in PLANNED:
            continue
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
    listed = set(re.findall(r"^\| `crates/([a-z]+/[a-z-]+)`", text, re.MULTILINE))
    present = {str(path.parent.relative_to(ROOT / "crates")) for path in ROOT.glob("crates/*/*/Cargo.toml")}
    faults = ([f"ARCHITECTURE.md does not list crates/{name}" for name in sorted(present - listed)]
              + [f"ARCHITECTURE.md lists crates/{name}, which does not exist" for name in sorted(listed - present)])
    for layer, others in MAY_USE.items():
        uses = f"May use: {', '.join(f'`{name}`' for name in others) or 'no other layer'}."
        readme = ROOT / "crates" / layer / "README.md"
        if not readme.exists() or uses not in readme.read_text(encoding="utf-8"):
            faults.append(f"crates/{layer}/README.md must have the line: {uses}")
        if f"| `{layer}` | {', '.join(f'`{name}`' for name in others) or 'no other layer'} |" not in text:
            faults.append(f"the table of layers in ARCHITECTURE.md does not say what {layer} may use")
    return faults


def html_faults() -> list[str]:
    faults = []
    for path in sorted(ROOT.glob("crates/*/*/src/**/*.rs")):
        name, text = path.relative_to(ROOT), path.read_text(encoding="utf-8")
        if PAGES not in path.parents:
            faults += [f"{name} writes HTML ({tag}): pages are in {PAGES.relative_to(ROOT)}" for tag in MARKUP.findall(text)]
        elif path.name != "frame.rs" and "PreEscaped" in text:
            faults.append(f"{name} bypasses the escaping of texts: only frame.rs may use PreEscaped")
    return faults


def main() -> int:
    faults = layer_faults() + wall_faults() + version_faults() + map_faults() + html_faults()
    for fault in faults:
        print(f"wall: {fault}", file=sys.stderr)
    print(f"walls: {len(FORBIDDEN)} crates, {len(LAYERS)} layers, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
