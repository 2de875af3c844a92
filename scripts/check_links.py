#!/usr/bin/env python3
"""Fails at links between documents that lead nowhere: files that do not exist, and headings that do not."""

import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("*.md", "docs/**/*.md", "crates/*/README.md", "examples/*.md", "bench/**/*.md", "fuzz/*.md")

FENCED = re.compile(r"^(```+).*?^\1$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
ID = re.compile(r'<a id="([^"]+)"')


def prose(path: Path) -> str:
    return FENCED.sub("", path.read_text(encoding="utf-8"))


@functools.cache
def anchors(path: Path) -> set[str]:
    """What may be behind `#` in a link to this document, as GitHub makes it of headings."""
    text, found = prose(path), set()
    for heading in HEADING.findall(text):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = sum(1 for known in found if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", known))
        found.add(f"{slug}-{count}" if slug in found else slug)
    return found | set(ID.findall(text))


def faults(path: Path) -> Iterator[str]:
    for link in LINK.findall(CODE.sub("", prose(path))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        where = path.relative_to(ROOT)
        if not target.exists():
            yield f"{where}: `{link}`: no such file"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{where}: `{link}`: no such heading"


def main() -> int:
    documents = sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern)})
    found = [fault for path in documents for fault in faults(path)]
    for fault in found:
        print(f"link: {fault}", file=sys.stderr)
    print(f"links: {len(documents)} documents, {len(found)} faults")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
