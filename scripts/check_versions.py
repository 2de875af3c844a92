#!/usr/bin/env python3
"""Fails when Cargo.lock has two versions of a package that deny.toml does not list, or deny.toml lists one that is not needed.

What `cargo deny check bans` checks, for machines without cargo-deny, and more: the list may only become shorter. `skip` of deny.toml
has all versions of a package but one; `NAME@0.22` is every version that begins so.
"""

import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def versions_of(lock: dict) -> dict[str, list[str]]:
    """The versions of each package."""
    versions = defaultdict(list)
    for package in lock["package"]:
        versions[package["name"]].append(package["version"])
    return versions


def is_of(version: str, beginning: str) -> bool:
    return version == beginning or version.startswith(f"{beginning}.")


def faults(versions: dict[str, list[str]], listed: list[str]) -> list[str]:
    """Versions beside a first one that are not listed, and what is listed in vain."""
    found, beginnings = [], defaultdict(list)
    for entry in listed:
        name, beginning = entry.split("@")
        beginnings[name].append(beginning)
        if len(versions.get(name, [])) < 2 or not any(is_of(version, beginning) for version in versions[name]):
            found.append(f"{entry} is not a second version any more: remove it from `skip` in deny.toml")
    for name, all_of_it in sorted(versions.items()):
        left = [version for version in all_of_it if not any(is_of(version, it) for it in beginnings[name])]
        if len(left) > 1:
            found.append(f"{name} is in Cargo.lock in versions {', '.join(left)}: use one, or list the others in deny.toml")
    return found


def main() -> int:
    versions = versions_of(tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8")))
    bans = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["bans"]
    found = faults(versions, [entry["crate"] for entry in bans["skip"]])
    for fault in found:
        print(f"versions: {fault}", file=sys.stderr)
    print(f"versions: {len(versions)} packages, {len(bans['skip'])} second versions, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
