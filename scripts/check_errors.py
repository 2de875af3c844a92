#!/usr/bin/env python3
"""Fails where an error loses what it was caused by, and lists every place.

An error type that has another error in a field says so to callers: the field is its `source`, or the text of the variant is that of
the other error (`transparent`). An error of a use case keeps the error at hand as its cause (`because`, `AppError::of`); its text is not
part of the message, where a program could no longer find it.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DERIVED = re.compile(r"#\[derive\([^)]*\bthiserror::Error\b[^)]*\)\].*?(?:\n\}|;\n)", re.DOTALL)
DECLARED = re.compile(r"\b(?:enum|struct) (\w+)")
BY_HAND = re.compile(r"\bimpl (?:std::error::)?Error for (\w+)")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
TEXT = re.compile(r"#\[error\((\w*)")
MADE = re.compile(r"\b(?:AppError::(?:new|fault)|Failure::(?:usage|fault))\(")
# What an error at hand is called.
AT_HAND = r"(?:error|err|e|source)"
PASTED = re.compile(
    rf"\{{{AT_HAND}(?::[^}}]*)?\}}|\b{AT_HAND}\.to_string\(\)"
    rf'|\bformat!\(\s*"[^"]*\{{[^}}"]*\}}[^"]*",(?:[^()]|\(\))*\b{AT_HAND}\s*,?\s*\)'
)
PAIRS = {"(": 1, ")": -1}


def error_types(sources: dict[Path, str]) -> set[str]:
    """The names of all error types of the workspace, and of those that other libraries give it in a box."""
    named = {"BoxError"}
    for text in sources.values():
        named.update(BY_HAND.findall(text))
        named.update(name for found in DERIVED.finditer(text) for name in DECLARED.findall(found[0])[:1])
    return named


def without_source(declared: str, named: set[str]) -> Iterator[str]:
    """The fields of an error type that have another error and do not say so."""
    one = rf"(?:\w+::)*(?:\w*Error|{'|'.join(sorted(named))})"
    field = re.compile(rf"(?<=[({{,\]\s])(?:(\w+): )?((?:Box<|Option<|Arc<)*{one}>*)(?=\s*[,)}}])")
    body = COMMENT.sub("", STRING.sub('""', declared)).split("{", 1)[-1] if " enum " in declared else declared
    for found in field.finditer(body):
        before = body[: found.start()]
        texts = TEXT.findall(before)
        marks = re.search(r"((?:#\[\w+\]\s*)+)(?:pub(?:\([^)]*\))? )?$", before)
        says_so = found[1] == "source" or (marks and re.search(r"source|from", marks[1]))
        if not says_so and texts and texts[-1] != "transparent":
            yield found[0]


def pasted(text: str) -> Iterator[int]:
    """The places of constructors that paste the text of an error into a message."""
    for found in MADE.finditer(text):
        at, depth = found.end(), 1
        while depth and at < len(text):
            depth += PAIRS.get(text[at], 0)
            at += 1
        if PASTED.search(text, found.end(), at):
            yield found.start()


def faults(sources: dict[Path, str]) -> Iterator[str]:
    """Everything that is wrong."""
    named = error_types(sources)
    for path, text in sources.items():
        place = path.relative_to(ROOT)
        for declared in DERIVED.finditer(text):
            name = DECLARED.search(declared[0])
            for field in without_source(declared[0], named):
                yield f"{place}: {name[1] if name else '?'} has `{field}`, which is not its source"
        for at in pasted(text):
            yield f"{place}:{text.count(chr(10), 0, at) + 1}: pastes an error into a message: give it as the cause"


def main() -> int:
    """Prints every fault."""
    paths = sorted((ROOT / "crates").rglob("src/**/*.rs"))
    sources = {path: path.read_text(encoding="utf-8") for path in paths}
    found = list(faults(sources))
    print("\n".join([*found, f"errors: {len(sources)} files, {len(found)} faults"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
