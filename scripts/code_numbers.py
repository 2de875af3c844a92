#!/usr/bin/env python3
"""Prints how large the code is and how it is written, crate by crate: lines, tests, functions, documentation, snapshots.

Production lines are all lines of `src` outside of test modules and test files. `--json` prints the same for a comparison of two commits.
"""

import json
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TEST_MODULE = re.compile(r"^#\[cfg\((all\()?test\b[^\n]*\]\s*(?:#\[[^\n]*\]\s*)*(?:pub(?:\([a-z]+\))? )?mod \w+ \{", re.MULTILINE)
TEST_FILE = re.compile(r"^#\[cfg\((?:all\()?test\b[^\n]*\]\s*(?:#\[[^\n]*\]\s*)*(?:pub(?:\([a-z]+\))? )?mod (\w+);", re.MULTILINE)
FUNCTION = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?(?:unsafe )?(?:extern \"C\" )?fn (\w+)", re.MULTILINE)
PUBLIC = re.compile(r"^\s*pub (?:const |async |unsafe )*(?:fn|struct|enum|trait|type|const|static|mod) (\w+)", re.MULTILINE)
LONG = 70
# Code that only tests use, though it is compiled for other crates' tests too.
SUPPORT = {"conformance", "testing", "tests", "fault_tests", "vectors", "planted"}


class Source(NamedTuple):
    """A file of a crate: what of it is in the product, what is a test, and all of it."""

    path: Path
    production: str
    test: str
    text: str


def blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def code_only(source: str) -> str:
    """The source with comments, strings and characters blanked, at the same offsets."""
    token = r"//[^\n]*|/\*.*?\*/|b?r(#*)\".*?\"\1|b?\"(?:\\.|[^\"\\])*\"|b?'(?:\\[^\n]{1,8}?|[^'\\\n])'"
    return re.sub(token, blank, source, flags=re.DOTALL)


def end_of_block(code: str, start: int) -> int:
    depth = 0
    for position in range(code.index("{", start), len(code)):
        if code[position] == "{":
            depth += 1
        elif code[position] == "}":
            depth -= 1
            if depth == 0:
                return position
    return len(code)


def function_lengths(code: str) -> list[int]:
    lengths = []
    for match in FUNCTION.finditer(code):
        stop = min((at for at in (code.find("{", match.end()), code.find(";", match.end())) if at >= 0), default=-1)
        if stop >= 0 and code[stop] == "{":
            start = code.count("\n", 0, match.start(1))
            lengths.append(code.count("\n", 0, end_of_block(code, stop)) - start + 1)
    return lengths


def is_documented(source: str, at: int) -> bool:
    lines = source[: source.rfind("\n", 0, at) + 1].rstrip("\n").split("\n")
    while lines and (lines[-1].strip().startswith("#") or lines[-1].strip().endswith(")]")):
        lines.pop()
    return bool(lines) and lines[-1].strip().startswith(("///", "//!", "/**"))


def split_tests(source: str) -> tuple[str, str]:
    """The production part of a file and its test module."""
    match = TEST_MODULE.search(source) if "#[cfg(" in source else None
    return (source[: match.start()], source[match.start() :]) if match else (source, "")


def test_files(sources: dict[Path, str]) -> set[Path]:
    """The files and folders that are modules of tests alone."""
    tests = set()
    for path, source in sources.items():
        for name in TEST_FILE.findall(source) if "#[cfg(" in source else ():
            stem = path.parent if path.name in ("lib.rs", "mod.rs", "main.rs") else path.with_suffix("")
            tests |= {stem / f"{name}.rs", stem / name}
    return tests


def sources_of(folder: Path) -> Iterator[Source]:
    """The files of a crate, by name."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.rs")) if "target" not in path.parts}
    tests = test_files(texts)
    for path, text in texts.items():
        parts = {*path.relative_to(folder).parts[:-1], path.stem}
        is_test = "src" not in parts or parts & SUPPORT or path.stem.endswith("_tests")
        is_test = is_test or not tests.isdisjoint((path, *path.parents))
        yield Source(path, *(("", text) if is_test else split_tests(text)), text)


def crate_numbers(folder: Path) -> dict:
    numbers = {"production": 0, "files": 0, "tests": 0, "doc": 0, "comments": 0, "lengths": [], "public": 0, "documented": 0,
               "unwrap": 0, "expect": 0, "unsafe": 0, "test_functions": 0, "proves": 0, "file_lengths": []}
    for _, production, test, source in sources_of(folder):
        numbers["tests"] += test.count("\n")
        numbers["test_functions"] += len(re.findall(r"^\s*#\[(?:tokio::)?test\]", source, re.MULTILINE))
        numbers["proves"] += len(re.findall(r"^\s*/// Proves", source, re.MULTILINE))
        if not production:
            continue
        code = code_only(production)
        numbers["production"] += production.count("\n")
        numbers["files"] += 1
        numbers["file_lengths"].append(production.count("\n"))
        numbers["doc"] += len(re.findall(r"^\s*//[/!]", production, re.MULTILINE))
        numbers["comments"] += len(re.findall(r"^\s*//(?![/!])", production, re.MULTILINE))
        numbers["lengths"] += function_lengths(code)
        numbers["unwrap"] += len(re.findall(r"\.unwrap\(\)", code))
        numbers["expect"] += len(re.findall(r"\.expect\(", code))
        numbers["unsafe"] += len(re.findall(r"\bunsafe \{", code))
        for match in PUBLIC.finditer(code):
            numbers["public"] += 1
            numbers["documented"] += is_documented(production, match.start(1))
    return numbers


def quantile(values: list[int], fraction: float) -> int:
    return sorted(values)[min(len(values) - 1, int(fraction * len(values)))] if values else 0


def main() -> int:
    crates = {path.parent.name: crate_numbers(path.parent) for path in sorted(ROOT.glob("crates/**/Cargo.toml"))}
    if "--json" in sys.argv[1:]:
        print(json.dumps({name: {key: value for key, value in numbers.items() if not isinstance(value, list)}
                          for name, numbers in crates.items()}, indent=1))
        return 0
    print(f"{'crate':<12} {'production':>10} {'files':>6} {'tests':>7} {'ratio':>6}")
    for name, numbers in sorted(crates.items(), key=lambda item: -item[1]["production"]):
        ratio = numbers["tests"] / max(1, numbers["production"])
        print(f"{name:<12} {numbers['production']:>10} {numbers['files']:>6} {numbers['tests']:>7} {ratio:>6.2f}")
    whole = {key: sum((numbers[key] for numbers in crates.values()), start=[] if key.endswith("lengths") else 0)
             for key in next(iter(crates.values()))}
    lengths, files = whole["lengths"], whole["file_lengths"]
    print(f"{'all':<12} {whole['production']:>10} {whole['files']:>6} {whole['tests']:>7} {whole['tests'] / whole['production']:>6.2f}")
    print(f"functions {len(lengths)}: median {statistics.median(lengths):.0f}, p90 {quantile(lengths, 0.9)}, p99 {quantile(lengths, 0.99)}, "
          f"over 40 lines {sum(n > 40 for n in lengths)}, over {LONG} lines {sum(n > LONG for n in lengths)}")
    print(f"files: median {statistics.median(files):.0f}, p90 {quantile(files, 0.9)}, largest {max(files)}")
    print(f"doc comment lines {whole['doc']}, other comment lines {whole['comments']}; public items {whole['public']}, "
          f"documented {whole['documented'] / whole['public']:.0%}")
    print(f"unwrap {whole['unwrap']}, expect {whole['expect']}, unsafe blocks {whole['unsafe']}; "
          f"tests {whole['test_functions']}, with `Proves` {whole['proves']}")
    print(f"snapshots {sum(1 for _ in ROOT.glob('crates/**/*.snap'))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
