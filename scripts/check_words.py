#!/usr/bin/env python3
"""Fails at words that readers of English stumble over, and lists every place.

Three kinds of text are read: what users read (strings of Rust and Python without tests, help, documents), comments (of
all languages, tests included), and names in code of Rust and Python. docs/glossary.md has the words to use instead.
"""

import functools
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# A word to avoid -> what it looks like, in users' texts and in comments.
# `is no`: "`x` is no duration"; "there is no run" is good English. `share`: the noun; "runs that share a name" is good.
WORDS = {
    "amount": r"\bamounts?\b",
    "anew": r"\banew\b",
    "asked for": r"\b(ask|asks|asked|asking) for\b",
    "chance": r"\bchances?\b(?![ _]level)",
    "come to": r"\b(comes?|came) to\b",
    "drawn again": r"\bdrawn? (rows )?again\b",
    "everybody": r"\beverybody\b",
    "go on": r"\b(goes|go|went|going|gone) on\b",
    "how sure": r"\bhow sure\b",
    "in words": r"\bin words\b",
    "is no": r"(?<!there )\bis no (?!longer\b)[a-z]",
    "let go": r"\b(lets?|letting) go\b",
    "lie": r"\b(lies|lying|lay|lain)\b",
    "mend": r"\bmend(s|ed|ing)?\b",
    "moment": r"(?<!first )(?<!second )\bmoment\b",
    "nobody": r"\bnobody\b",
    "of its own": r"\bof (its|their|his) own\b",
    "pass over": r"\bpass(es|ed|ing)? over\b",
    "share": r"\b(an?|the|this|its|each|same|equal|constant) shares?\b|\bshares? of\b",
    "somebody": r"\b(some|any)(body|one)\b",
    "stand": r"\bstands?\b",
    "take up": r"\b(take|takes|taken|took|taking) (it |them |this )?up\b(?! to\b)",
    "told": r"\b(told|tells?|telling)\b",
    "truth value": r"\btruth values?\b",
    "twin": r"\btwins?\b",
    "what for": r"\bwhat for\b",
    "what is true": r"\bwhat is true\b",
    "where there is none": r"\bwhere (there (is|are|was|were) none|nobody)\b",
    "whoever": r"\bwhoever\b",
}
PATTERNS = {word: re.compile(pattern, re.IGNORECASE) for word, pattern in WORDS.items()}
ANY = re.compile("|".join(WORDS.values()), re.IGNORECASE)

# Words that no name in Rust code may have, as `snake_case` or `CamelCase` parts.
NAMES = (
    "anew chance goes_on let_go mend nobody onlooker passed_over somebody stands take_up told twin twins whoever".split()
)
# `chance level` is a term of the field.
NAME_PATTERNS = {name: re.compile(rf"(?:^|_){name}(?=_|$)(?!_level)") for name in NAMES}
ANY_NAME = re.compile("|".join(pattern.pattern for pattern in NAME_PATTERNS.values()))
# Declarations in Rust: types that do not say what they hold, and functions that report something without saying so.
TYPES = (
    "Asked Door Earlier Ended Found Gathered Given Held Judged Kept Known Let Met Named Onlooker Placed Ranked Reading Said Scored Seen "
    "Sight Standing"
)
DECLARATION = re.compile(
    rf"\b(struct|enum|type|trait) (?P<type>{TYPES.replace(' ', '|')})$|\bfn (?P<function>tells?(_\w+)?)$"
)

RUST_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>b?r(?P<hashes>\#*)".*?"(?P=hashes))
      | (?P<string>b?"(?:\\.|[^"\\])*")
      | (?P<char>b?'(?:\\.[^']*|[^'\\])')
      | (?P<name>\b[A-Za-z_][A-Za-z0-9_]+\b)""",
    re.VERBOSE | re.DOTALL,
)
TEST_MODULE = re.compile(r"^#\[cfg\(test\)\]\s*mod \w+ \{", re.MULTILINE)
CODE = re.compile(r"`[^`]*`|\{[A-Za-z_0-9.:]*\}")
# What ends a line within a string: the word after it begins there, and a phrase goes over it.
LINE_END = re.compile(r"\\[nrt]|\\\n")

Found = Iterator[tuple[str, str]]


@functools.cache
def named(name: str) -> str:
    """The name as `snake_case` if it has a word to avoid, else nothing."""
    words = snake(name)
    return words if ANY_NAME.search(words) else ""


def snake(name: str) -> str:
    return name.lower() if name.isupper() else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def is_test(path: Path) -> bool:
    folders = {"tests", "fault_tests", "testing", "conformance", "examples"}
    return bool(folders & set(path.parts)) or path.stem in folders or path.stem.endswith("_tests")


def rust(path: Path) -> Found:
    """Kind and text of each string, comment and name."""
    source = path.read_text()
    tests = TEST_MODULE.search(source)
    tests_from = 0 if is_test(path) else tests.start() if tests else len(source)
    is_command_line = "args" in path.relative_to(ROOT).parts or path.name == "args.rs"
    block = ""
    for token in RUST_TOKEN.finditer(source):
        if token["comment"]:
            # Phrases go over line ends, so neighbouring comments are one text.
            block += " " + token[0].lstrip("/!* ")
            if is_command_line and token[0].startswith("///"):
                yield "texts", token[0]
            continue
        if block:
            yield "comments", block
            block = ""
        if token["name"]:
            yield "names", token[0]
            if declared := DECLARATION.search(source[max(0, token.start() - 8) : token.end()]):
                yield "declarations", declared[0]
        elif (token["string"] or token["raw"]) and token.start() < tests_from and " " in token[0]:
            yield "texts", token[0]
    yield "comments", block


def python(path: Path, is_package: bool) -> Found:
    block = ""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT:
            block += " " + token.string.lstrip("# ")
        elif token.type == tokenize.STRING:
            docstring = token.string.startswith('"""')
            if is_package or docstring:
                yield "texts" if is_package else "comments", token.string
        elif token.type not in (tokenize.NL, tokenize.NEWLINE):
            yield "comments", block
            block = ""
            if token.type == tokenize.NAME and len(token.string) > 1:
                yield "names", token.string
    yield "comments", block


def lines(path: Path, mark: str) -> Found:
    stripped = (line.strip() for line in path.read_text().split("\n"))
    yield "comments", " ".join(line.lstrip(mark) for line in stripped if line.startswith(mark))


def texts() -> dict[str, list[tuple[str, str]]]:
    """Kind and text of everything that is read, by file."""
    found = {}
    for folder in ("crates", "examples/rust", "fuzz"):
        for path in sorted(ROOT.glob(f"{folder}/**/*.rs")):
            if "target" not in path.parts:
                found[path] = list(rust(path))
    for folder in ("crates/edges/python", "scripts", "bench", "examples"):
        for path in sorted(ROOT.glob(f"{folder}/**/*.py")):
            if path != Path(__file__).resolve():
                found[path] = list(python(path, is_package="crates/edges/python/python" in str(path)))
    for path in [ROOT / ".ci/run", ROOT / "Makefile", *sorted(ROOT.glob("**/*.sh")), *sorted(ROOT.glob("examples/*.toml"))]:
        found[path] = list(lines(path, "#"))
    for path in sorted(ROOT.glob("crates/**/*.sql")):
        found[path] = list(lines(path, "--"))
    globs = ("*.md", "crates/**/README.md", "examples/*.md", "docs/**/*.md")
    for path in sorted(path for glob in globs for path in ROOT.glob(glob)):
        if path.name not in ("glossary.md", "CHANGELOG.md"):
            found[path] = [("texts", path.read_text())]
    return {str(path.relative_to(ROOT)): parts for path, parts in found.items()}


def places() -> Iterator[str]:
    """Every place of a word to avoid."""
    for file, parts in texts().items():
        for kind, part in parts:
            if kind == "declarations":
                yield f"{file}: `{part}` does not say what it is"
                continue
            text = named(part) if kind == "names" else " ".join(CODE.sub(" ", LINE_END.sub(" ", part)).split())
            if not text or (kind != "names" and not ANY.search(text)):
                continue
            for word, pattern in (NAME_PATTERNS if kind == "names" else PATTERNS).items():
                if pattern.search(text):
                    yield f"{file}: `{word}` in {kind}: {text[:200]}"


def main() -> int:
    found = list(places())
    if found:
        print("\n".join(found), file=sys.stderr)
        print(f"words to avoid: {len(found)}; docs/glossary.md has the words to use instead", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
