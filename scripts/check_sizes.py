#!/usr/bin/env python3
"""Fails when something is larger than its limit: a folder, a crate, a file, a function, or a line of a document.

A folder of code has at most 20 files and folders, a file of production code 600 lines, one of tests 1,000, a function of production
code 70, and a line of a document 200 characters, outside of tables and blocks of code. What is larger is in a list of `limits/` with
how large it may be and why: `folders.txt`, `files.txt`, `functions.txt` (a file and a function), and `documents.txt` (a document and
how many of its lines are longer). `crates.txt` has a limit for every crate, `names.txt` one for the names that several types of the
crates have.

The lists only shrink. A limit that is no longer needed, or far above the size, is a fault: `--renew` lowers or deletes it. Who raises a
limit writes the reason into its line.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import code_numbers

ROOT = Path(__file__).resolve().parent.parent
LISTS = ROOT / "scripts" / "limits"
CODE = {".rs", ".py", ".sh", ".md"}
# Columns of a line of a document.
COLUMNS_MAX = 200
FENCE = re.compile(r" *(?:```|~~~)")
# Formatted code: a function ends at the first `}` that is as far right as its first line.
FUNCTION = re.compile(r"^( *)(?:pub(?:\([^)]*\))? )?(?:default )?(?:const )?(?:async )?(?:unsafe )?(?:extern \"C\" )?fn (\w+)", re.MULTILINE)
# The end of its first lines: of a body that begins there, or of all of it.
HEAD_END = re.compile(r"([{};]) *(?://[^\n]*)?\n")

# A declaration of a type; not what a trait or its implementation calls a type, such as `type Err`.
TYPE = re.compile(
    r"^(?: *(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:struct|enum|union|trait)|(?:pub(?:\([^)]*\))? )?type) (\w+)", re.MULTILINE
)


class Kind(NamedTuple):
    """What has a limit: the list, the size that anything may have (none: each is listed), the step of limits, and what to do."""

    list: str
    usual: int | None
    step: int
    unit: str
    advice: str


FOLDERS = Kind("folders.txt", 20, 1, "files and folders", "group them by subject in folders")
CRATES = Kind("crates.txt", None, 100, "production lines", "take code out or move it to where it belongs")
FILES = Kind("files.txt", 600, 10, "production lines", "divide it by subject")
TESTS = Kind("files.txt", 1000, 10, "lines of tests", "divide it by subject")
FUNCTIONS = Kind("functions.txt", 70, 1, "lines", "a function does one thing")
DOCUMENTS = Kind("documents.txt", 0, 1, f"lines of more than {COLUMNS_MAX} characters", "wrap them")
NAMES = Kind("names.txt", None, 1, "names that several types have", "name a type after what it is in the field's terms")
KINDS = (FOLDERS, CRATES, FILES, TESTS, FUNCTIONS, DOCUMENTS, NAMES)
# So many steps below its limit a size may be before the limit has to fall.
SLACK = 3


class Size(NamedTuple):
    kind: Kind
    subject: str
    size: int


class Limit(NamedTuple):
    most: int
    reason: str


def listed() -> list[Path]:
    """The files of the repository, as git sees them."""
    shown = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True,
                           text=True).stdout
    return [path for path in map(Path, shown.splitlines()) if (ROOT / path).exists()]


def folder_sizes(paths: list[Path]) -> Iterator[Size]:
    inside: dict[str, set[str]] = {}
    has_code = {str(path.parent) for path in paths if path.suffix in CODE}
    for path in paths:
        parts = path.parts
        for depth in range(1, len(parts)):
            inside.setdefault("/".join(parts[:depth]), set()).add(parts[depth])
    return (Size(FOLDERS, folder, len(inside[folder])) for folder in has_code & inside.keys())


def function_sizes(path: str, code: str) -> Iterator[Size]:
    for function in FUNCTION.finditer(code):
        indent, name = function.groups()
        head = HEAD_END.search(code, function.end())
        end = code.find(f"\n{indent}}}", head.end() - 1) if head and head[1] == "{" else -1
        if end > 0:
            yield Size(FUNCTIONS, f"{path}:{name}", code.count("\n", function.start(), end) + 2)


def crate_sizes(folder: Path) -> Iterator[Size]:
    """The sizes of a crate, its files and its functions."""
    lines = 0
    for source in code_numbers.sources_of(folder):
        path = str(source.path.relative_to(ROOT))
        production = source.production.count("\n")
        lines += production
        if production:
            yield Size(FILES, path, production)
            yield from function_sizes(path, source.production)
        else:
            yield Size(TESTS, path, source.test.count("\n"))
    yield Size(CRATES, str(folder.relative_to(ROOT)), lines)


def repeated_names(code: Iterable[str]) -> int:
    """How many names several types have."""
    counts = Counter(name for text in code for name in TYPE.findall(text))
    return sum(count > 1 for count in counts.values())


def long_lines(text: str) -> list[int]:
    """The lines of a document that are too long, outside of tables and blocks of code; they count from 1."""
    found, is_code = [], False
    for number, line in enumerate(text.split("\n"), 1):
        is_code ^= bool(FENCE.match(line))
        if len(line) > COLUMNS_MAX and not is_code and not line.lstrip().startswith("|"):
            found.append(number)
    return found


def sizes() -> list[Size]:
    paths = listed()
    found = list(folder_sizes(paths))
    for manifest in sorted(ROOT.glob("crates/*/*/Cargo.toml")):
        found += crate_sizes(manifest.parent)
    code = ((ROOT / path).read_text(encoding="utf-8") for path in paths if path.parts[0] == "crates" and path.suffix == ".rs")
    found.append(Size(NAMES, "crates", repeated_names(code)))
    for path in paths:
        if path.suffix == ".md":
            found.append(Size(DOCUMENTS, str(path), len(long_lines((ROOT / path).read_text(encoding="utf-8")))))
    return largest(found)


def largest(found: list[Size]) -> list[Size]:
    """Each subject once: of functions of one name in a file the longest."""
    most: dict[tuple[str, str], Size] = {}
    for size in found:
        key = (size.kind.list, size.subject)
        if key not in most or most[key].size < size.size:
            most[key] = size
    return list(most.values())


def limits_of(text: str) -> dict[str, Limit]:
    """The limits by subject, of lines `SUBJECT LIMIT REASON`."""
    found = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            subject, most, reason = (line.split(None, 2) + ["", ""])[:3]
            found[subject] = Limit(int(most) if most.isdigit() else -1, reason)
    return found


def committed() -> dict[str, dict[str, Limit]]:
    """The limits of each list as the last commit has them; none where it has none."""
    names = sorted({path.name for path in LISTS.glob("*.txt")} | {kind.list for kind in KINDS})
    shown = [subprocess.run(["git", "show", f"HEAD:scripts/limits/{name}"], cwd=ROOT, capture_output=True, text=True) for name in names]
    return {name: limits_of(one.stdout) if one.returncode == 0 else {} for name, one in zip(names, shown, strict=True)}


def rounded(size: int, step: int) -> int:
    return -(-size // step) * step


def size_fault(size: Size, limit: Limit | None) -> str | None:
    kind, name = size.kind, f"scripts/limits/{size.kind.list}"
    what = f"{size.subject} has {size.size} {kind.unit}"
    if limit is None:
        if kind.usual is None:
            return f"{what} and no limit: list it in {name} with its reason"
        return f"{what}, more than {kind.usual}: {kind.advice}" if size.size > kind.usual else None
    if size.size > limit.most:
        raised = rounded(size.size, kind.step)
        return f"{what}, {name} allows {limit.most}: {kind.advice}, or raise the limit to {raised} and write why into its line"
    if lowered(size, limit) != limit:
        return f"{what}, {name} allows {limit.most}: lower it with scripts/check_sizes.py --renew"
    return None


def lowered(size: Size, limit: Limit) -> Limit | None:
    """The limit that is left: none where nothing special is needed, a lower one where it is far above the size."""
    if size.kind.usual is not None and size.size <= size.kind.usual:
        return None
    is_far = limit.most - size.size > SLACK * size.kind.step
    return Limit(rounded(size.size, size.kind.step), limit.reason) if is_far else limit


def list_faults(name: str, limits: dict[str, Limit], before: dict[str, Limit], subjects: set[str]) -> Iterator[str]:
    """What is wrong with the lines of a list: each is of something, with a number and a reason, and another reason where it was raised."""
    for subject, limit in limits.items():
        if limit.most < 0 or not limit.reason:
            yield f"scripts/limits/{name}: {subject} needs a limit and a reason"
        if subject not in subjects:
            yield f"scripts/limits/{name}: there is nothing at {subject}: delete its line with scripts/check_sizes.py --renew"
        if subject in before and limit.most > before[subject].most and limit.reason == before[subject].reason:
            yield f"scripts/limits/{name}: the limit of {subject} was raised from {before[subject].most} to {limit.most}: write why into its line"


def renew(path: Path, found: dict[str, Size]) -> None:
    """Lowers the limits of a list, and deletes the lines that are not needed."""
    text = path.read_text(encoding="utf-8")
    header = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    left = {subject: lowered(found[subject], limit) for subject, limit in limits_of(text).items() if subject in found}
    limits = {subject: limit for subject, limit in left.items() if limit}
    width = max((len(subject) for subject in limits), default=0)
    lines = [f"{subject:<{width}} {limit.most:>6} {limit.reason}\n" for subject, limit in sorted(limits.items())]
    path.write_text(header + "".join(lines), encoding="utf-8")


def faults(found: list[Size]) -> Iterator[str]:
    before = committed()
    for name in before:
        path = LISTS / name
        # Without its list nothing may be larger than usual.
        limits = limits_of(path.read_text(encoding="utf-8")) if path.exists() else {}
        ours = [size for size in found if size.kind.list == name]
        yield from filter(None, (size_fault(size, limits.get(size.subject)) for size in ours))
        yield from list_faults(name, limits, before[name], {size.subject for size in ours})


def main() -> int:
    found = sizes()
    if "--renew" in sys.argv[1:]:
        for path in LISTS.glob("*.txt"):
            renew(path, {size.subject: size for size in found if size.kind.list == path.name})
    wrong = sorted(faults(found))
    for fault in wrong:
        print(f"size: {fault}", file=sys.stderr)
    print(f"sizes: {len(found)} folders, crates, files, functions and documents, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
