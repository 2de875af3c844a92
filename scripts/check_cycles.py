#!/usr/bin/env python3
"""Finds modules of a crate that use each other in a circle, among the modules of one folder. Their number may only fall.

`scripts/cycles.json` holds how many modules of each crate are in a circle; `--update` writes lower numbers, `-v` names them.
What a module uses of its parents, and parents of their children, is no circle. Test modules are not read.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COUNTS = ROOT / "scripts" / "cycles.json"

TEST_MODULE = re.compile(r"^#\[cfg\(test\)\]\s*(?:#\[[^\n]*\]\s*)*mod \w+ \{.*", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"//[^\n]*")
USE = re.compile(r"\b(crate|super(?:::super)*|self)::(\{[^;]*?\}|[\w:]+(?:\{[^;]*?\})?)", re.DOTALL)

Module = tuple[str, ...]


def modules_of(source: Path) -> dict[Module, Path]:
    """The files of a crate by module path; tests are left out."""
    found = {}
    for path in sorted(source.rglob("*.rs")):
        parts = list(path.relative_to(source).with_suffix("").parts)
        if parts[-1] in ("mod", "lib", "main"):
            parts.pop()
        if parts and not any(part == "tests" or part.endswith("_tests") for part in parts):
            found[tuple(parts)] = path
    return found


def spread(text: str) -> list[str]:
    """`a::{b, c::d}` as `a::b` and `a::c::d`."""
    text = re.sub(r"\s+", "", text)
    if "{" not in text:
        return [text]
    head, body = text.split("{", 1)
    body, depth, parts, start = body.rsplit("}", 1)[0], 0, [], 0
    for index, letter in enumerate(body + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(body[start:index])
            start = index + 1
    return [head + tail for part in parts if part for tail in spread(part)]


def used_by(module: Module, text: str, modules: dict[Module, Path]) -> set[Module]:
    used = set()
    for base, rest in USE.findall(text):
        above = {"crate": (), "self": module}.get(base)
        if above is None:
            above = module[: len(module) - base.count("super")]
        for path in spread(rest):
            names = above + tuple(path.split("::"))
            longest = max((names[:end] for end in range(len(names) + 1) if names[:end] in modules), key=len, default=None)
            if longest:
                used.add(longest)
    return used


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Strongly connected parts with more than one member."""
    def reached(start: str) -> set[str]:
        seen, waiting = set(), [start]
        while waiting:
            for target in edges.get(waiting.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return seen

    reach = {name: reached(name) for name in edges}
    found = []
    for name in sorted(edges):
        circle = {other for other in reach[name] if name in reach.get(other, ())}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def circles_of(source: Path) -> list[tuple[str, set[str]]]:
    """Circles of a crate: the folder, and the modules in it."""
    modules = modules_of(source)
    siblings: dict[Module, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module, path in modules.items():
        text = COMMENT.sub("", TEST_MODULE.sub("", path.read_text()))
        for used in used_by(module, text, modules):
            common = 0
            while common < min(len(module), len(used)) and module[common] == used[common]:
                common += 1
            if common < min(len(module), len(used)):
                siblings[module[:common]][module[common]].add(used[common])
    return [("/".join(folder), circle) for folder, edges in sorted(siblings.items()) for circle in circles(edges)]


def main() -> int:
    found = {source.parent.name: circles_of(source) for source in sorted(ROOT.glob("crates/*/src"))}
    counts = {crate: sum(len(names) for _, names in parts) for crate, parts in found.items() if parts}
    before = json.loads(COUNTS.read_text()) if COUNTS.exists() else counts
    more = {crate for crate, count in counts.items() if count > before.get(crate, 0)}
    for crate, parts in found.items():
        if crate in more or "-v" in sys.argv:
            for folder, names in parts:
                print(f"{crate}/{folder}: {', '.join(sorted(names))} use each other in a circle", file=sys.stderr)
    if more:
        return 1
    if "--update" in sys.argv:
        COUNTS.write_text(json.dumps(counts, indent=2) + "\n")
    elif counts != before:
        print("fewer circles: keep it so with scripts/check_cycles.py --update", file=sys.stderr)
        return 1
    print(f"modules in a circle: {sum(counts.values())} left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
