#!/usr/bin/env python3
"""Lists what a suite of tests skipped and why. With a list of what may be skipped, fails at the rest.

    scripts/skipped.py target/skipped/SUITE.txt [--allowed .ci/skipped.txt]

`scripts/count_skips.sh` runs a suite so that its skips are counted in such a file: a line for each, the test, a tab, and why.
The list has lines of a suite, a test (`*` is any text), and the reason why CI may skip it.
"""

import argparse
import fnmatch
import sys
from pathlib import Path

Skip = tuple[str, str]


def skips_of(text: str) -> list[Skip]:
    """The tests that were skipped, and why; each once, in order."""
    lines = (line.split("\t", 1) for line in text.splitlines())
    return sorted({(test, why) for test, why in lines})


def summary(suite: str, skips: list[Skip]) -> str:
    """How many tests were skipped, and for each reason which."""
    lines = [f"{suite}: {len(skips)} skipped"]
    for reason in sorted({why for _, why in skips}):
        tests = [test for test, why in skips if why == reason]
        lines += [f"  {len(tests)}: {reason}", *(f"       {test}" for test in tests)]
    return "\n".join(lines)


def allowed_in(text: str, suite: str) -> list[str]:
    """The patterns of the tests that this suite may skip."""
    patterns = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split(None, 2)
        if not words or line.startswith("#"):
            continue
        if len(words) < 3:
            sys.exit(f"line {number} of the allowed skips needs a suite, tests and a reason: {line}")
        if words[0] == suite:
            patterns.append(words[1])
    return patterns


def differences(skips: list[Skip], patterns: list[str]) -> tuple[list[Skip], list[str]]:
    """The skips that no pattern allows, and the patterns that no skip needs."""
    # `[` is a character here: pytest puts the parameters of a test in brackets.
    literal = [pattern.replace("[", "[[]") for pattern in patterns]
    left = [skip for skip in skips if not any(fnmatch.fnmatchcase(skip[0], it) for it in literal)]
    tests = [test for test, _ in skips]
    return left, [it for it, pattern in zip(patterns, literal, strict=True) if not fnmatch.filter(tests, pattern)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counted", type=Path)
    parser.add_argument("--allowed", type=Path, nargs="+")
    options = parser.parse_args()
    suite = options.counted.stem
    if not options.counted.exists():
        sys.exit(f"{options.counted} does not exist: the suite did not count its skips")
    skips = skips_of(options.counted.read_text(encoding="utf-8"))
    print(summary(suite, skips))
    if options.allowed is None:
        return 0
    lists = "\n".join(path.read_text(encoding="utf-8") for path in options.allowed)
    refused, unused = differences(skips, allowed_in(lists, suite))
    for pattern in unused:
        print(f"note: listed and not skipped: {pattern}")
    for test, why in refused:
        print(f"not allowed: {test} ({why}): list it in {options.allowed[0]}, or have it run", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
