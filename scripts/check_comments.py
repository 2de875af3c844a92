#!/usr/bin/env python3
"""Fails at doc comments of fields and variants that say nothing, at public types without a comment, and at long lines of comments, and lists every
place.

A comment says nothing if each of its words is in the name or the type of the field, or in the name of what holds it: `/// The run.` above
`run: RunId`. A good one has a unit, what null means, a bound, or a reason; a field whose name says it all has none. Public
types and traits always have one; rustc's `missing_docs` would demand it of every field too.

`--fix` deletes the lines of such comments.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# Comments that are texts for users: the help of commands, the docstrings of Python.
TEXTS = ("crates/edges/cli/src/args", "crates/edges/python")
# Programs: nothing in them is public.
PROGRAMS = ("crates/edges", "crates/base/schema", "crates/base/no-schema")

# Words that only connect others, or point at the item itself.
EMPTY = set(
    "a all an and are as been by each every here how is it its itself many much of or so such that the their them there these they this "
    "those was were what when where which while who whose why".split()
)
# What names are short for.
SHORT = {"args": "arguments", "at": "time", "config": "configuration", "count": "number", "dir": "folder", "id": "identifier",
         "max": "most", "min": "least"}

COMMENT = re.compile(r"^ *///")
# So long may a line of a comment be, but for the row of a table.
LINE_MAX = 140
LONG = re.compile(rf"^(?=.{{{LINE_MAX + 1}}}) *//[/!]?+(?! *\|)")
MEMBER = re.compile(r"^ +(?:pub(?:\([^)]*\))? )?(?:(?P<field>[a-z_]\w*): (?P<type>.+)|(?P<variant>[A-Z]\w*)(?P<fields>[({ ,].*|))$")
HOLDER = re.compile(r"^(?:pub(?:\([^)]*\))? )?(?P<kind>struct|enum) (?P<name>\w+)")
PUBLIC = re.compile(r"^pub (?:unsafe )?(?:struct|enum|union|trait|type) (?P<name>\w+)")
TEST_MODULE = re.compile(r"^#\[cfg\((?:all\()?test\b[^\n]*\]\s*(?:#\[[^\n]*\]\s*)*(?:pub(?:\([a-z]+\))? )?mod \w+ \{", re.MULTILINE)


class Place(NamedTuple):
    """A comment or an item: its lines, and what is wrong with it."""

    first: int
    last: int
    why: str


def words_of(text: str) -> set[str]:
    """The words of a comment or of a name in code, in a common form."""
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text).replace("_", " ").lower()
    return {stem(SHORT.get(word, word)) for word in re.findall(r"[a-z0-9]+", text)} - EMPTY


def stem(word: str) -> str:
    for ending in ("es", "s", "ed", "ing"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word.rstrip("e") if len(word) > 3 else word


def says_nothing(comment: str, names: str) -> bool:
    return bool(re.search(r"[A-Za-z]", comment)) and "# " not in comment and words_of(comment) <= words_of(names)


def behind_attributes(lines: list[str], at: int) -> int:
    """The first line behind the attributes that begin at a line."""
    while at < len(lines) and lines[at].lstrip().startswith("#["):
        depth = lines[at].count("[") - lines[at].count("]")
        at += 1
        while depth > 0 and at < len(lines):
            depth += lines[at].count("[") - lines[at].count("]")
            at += 1
    return at


def holders(lines: list[str]) -> Iterator[tuple[int, int, re.Match[str]]]:
    """The structs and enums at the top of a file, by their first and last line. What a macro makes documents of is none."""
    for at, line in enumerate(lines):
        holder = HOLDER.match(line)
        if holder and line.endswith("{"):
            yield at, next((end for end in range(at, len(lines)) if lines[end].startswith("}")), at), holder


def above(lines: list[str], at: int) -> list[str]:
    """The lines above an item up to the blank line before it: comments and attributes."""
    first = at
    while first > 0 and lines[first - 1].strip():
        first -= 1
    return lines[first:at]


def empty_comments(lines: list[str]) -> Iterator[Place]:
    """The comments of fields and variants that say nothing."""
    for first, last, holder in holders(lines):
        # A schema lists the words of an enum either with a comment each, or with none.
        if holder["kind"] == "enum" and any("JsonSchema" in line for line in above(lines, first)):
            continue
        at = first
        while at < last:
            begin = at
            while COMMENT.match(lines[at]):
                at += 1
            if at == begin:
                at += 1
                continue
            member = MEMBER.match(lines[behind_attributes(lines, at)])
            comment = " ".join(line.strip()[3:].strip() for line in lines[begin:at])
            if member and says_nothing(comment, " ".join([holder["name"], *filter(None, member.groups())])):
                yield Place(begin, at, f"says nothing: {comment}")


def missing_comments(lines: list[str]) -> Iterator[Place]:
    """Public types and traits without a comment. The message of an error is one."""
    for at, line in enumerate(lines):
        item = PUBLIC.match(line)
        if item and not any(COMMENT.match(line) or "#[error(" in line for line in above(lines, at)):
            yield Place(at, at + 1, f"`{item['name']}` has no comment")


def long_comments(lines: list[str]) -> Iterator[Place]:
    for at, line in enumerate(lines):
        if LONG.match(line):
            yield Place(at, at + 1, f"is a comment of {len(line)} characters, {LINE_MAX} are allowed")


def is_test(path: Path) -> bool:
    return "src" not in path.parts or {"tests", "testing"} & {*path.parts, path.stem} or path.stem.endswith("_tests")


def is_in(path: Path, folders: tuple[str, ...]) -> bool:
    return str(path).startswith(folders)


def main() -> int:
    count = 0
    for file in sorted((ROOT / "crates").rglob("*.rs")):
        path = file.relative_to(ROOT)
        text = file.read_text()
        for place in long_comments(text.split("\n")):
            print(f"{path}:{place.first + 1}: {place.why}")
            count += 1
        if is_test(path):
            continue
        test = TEST_MODULE.search(text)
        lines = text[: test.start() if test else None].split("\n")
        empty = [] if is_in(path, TEXTS) else list(empty_comments(lines))
        if empty and "--fix" in sys.argv[1:]:
            every = text.split("\n")
            for place in reversed(empty):
                del every[place.first : place.last]
            file.write_text("\n".join(every))
            continue
        missing = [] if is_in(path, PROGRAMS) else missing_comments(lines)
        for place in [*empty, *missing]:
            print(f"{path}:{place.first + 1}: {place.why}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
