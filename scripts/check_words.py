#!/usr/bin/env python3
"""Counts words that readers of English stumble over, in everything that a user reads. A count may only fall.

Read are: strings of Rust (without tests), doc comments of the command line, strings of the Python package, and the
documents. `scripts/words.json` holds the counts; `--update` writes lower ones. docs/glossary.md has the words to use instead.
"""

import io
import json
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COUNTS = ROOT / "scripts" / "words.json"

# What is counted -> what it looks like. `is no`: "`x` is no duration"; "there is no run" is good English.
WORDS = {
    "anew": r"\banew\b",
    "drawn again": r"\bdrawn? (rows )?again\b",
    "how sure": r"\bhow sure\b",
    "is no": r"(?<!there )\bis no (?!longer\b)[a-z]",
    "let go": r"\blets? go\b",
    "mend": r"\bmend(s|ed|ing)?\b",
    "nobody": r"\bnobody\b",
    "pass over": r"\bpass(es|ed)? over\b",
    "stand": r"\bstands?\b",
    "take up": r"\b(take|takes|taken|took) up\b",
    "told": r"\btold\b",
    "twin": r"\btwins?\b",
    "what is true": r"\bwhat is true\b",
    "whoever": r"\bwhoever\b",
}
PATTERNS = {word: re.compile(pattern, re.IGNORECASE) for word, pattern in WORDS.items()}

RUST_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>b?r(?P<hashes>\#*)".*?"(?P=hashes))
      | (?P<string>b?"(?:\\.|[^"\\])*")
      | (?P<char>b?'(?:\\.[^']*|[^'\\])')""",
    re.VERBOSE | re.DOTALL,
)
TEST_MODULE = re.compile(r"^#\[cfg\(test\)\]\s*mod \w+ \{", re.MULTILINE)


def rust_texts(path: Path) -> list[str]:
    source = path.read_text()
    tests = TEST_MODULE.search(source)
    source = source[: tests.start()] if tests else source
    is_command_line = "args" in path.relative_to(ROOT).parts or path.name == "args.rs"
    texts = []
    for token in RUST_TOKEN.finditer(source):
        if token["string"] or token["raw"]:
            texts.append(token[0])
        elif is_command_line and token[0].startswith("///"):
            texts.append(token[0])
    return texts


def python_texts(path: Path) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return [token.string for token in tokens if token.type == tokenize.STRING]


def texts() -> dict[str, list[str]]:
    """What a user reads, by file."""
    found = {}
    for path in sorted(ROOT.glob("crates/*/*/src/**/*.rs")):
        if path.name != "tests.rs" and "tests" not in path.parts:
            found[str(path.relative_to(ROOT))] = rust_texts(path)
    for path in sorted(ROOT.glob("crates/edges/python/python/**/*.py")):
        found[str(path.relative_to(ROOT))] = python_texts(path)
    for path in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        if path.name != "glossary.md":
            found[str(path.relative_to(ROOT))] = [path.read_text()]
    return found


def main() -> int:
    counts, places = Counter(), {}
    for file, parts in texts().items():
        for word, pattern in PATTERNS.items():
            count = sum(len(pattern.findall(part)) for part in parts)
            counts[word] += count
            if count:
                places.setdefault(word, Counter())[file] += count
    before = json.loads(COUNTS.read_text()) if COUNTS.exists() else {word: sys.maxsize for word in WORDS}
    more = [word for word in WORDS if counts[word] > before.get(word, 0)]
    fewer = [word for word in WORDS if counts[word] < before.get(word, 0)]
    if more:
        for word in more:
            worst = ", ".join(f"{file} ({count})" for file, count in places[word].most_common(5))
            print(f"`{word}` occurs {counts[word]} times, {before.get(word, 0)} are allowed: {worst}", file=sys.stderr)
        return 1
    if "--update" in sys.argv[1:]:
        COUNTS.write_text(json.dumps({word: counts[word] for word in WORDS}, indent=2) + "\n")
    elif fewer:
        print(f"fewer of: {', '.join(fewer)}; keep it so with scripts/check_words.py --update", file=sys.stderr)
        return 1
    print(f"words to avoid: {sum(counts.values())} left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
