#!/usr/bin/env python3
"""Fails when modules of a crate depend on each other in a cycle, among the modules of one folder, and lists the uses that make it.

A module depends on the module that defines what it names: a name that a parent only re-exports counts as a use of the module
behind it. What a module uses of its parents, and parents of their children, is not a cycle. Tests are not read, and calls of
methods are not followed: only what is named counts.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

TEST_ITEM = re.compile(r"^( *)#\[cfg\(test\)\]\s*(?:#\[[^\n]*\]\s*)*(?=[^#\s])", re.MULTILINE)
TEST_FILE = re.compile(r"^ *#\[cfg\(test\)\]\s*(?:#\[[^\n]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod (\w+);", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*")
PATH = re.compile(r"\b(crate|super(?:::super)*|self)::(?=[\w{*])")
IMPORT = re.compile(r"\buse ([^;]+);")
DEFINITION = r"^\s*pub(?:\([^)]*\))? (?:\w+ )*(?:struct|enum|union|trait|fn|type|const|static) %s\b"

Module = tuple[str, ...]


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def without(text: str, start: int, end: int) -> str:
    """The text with a part removed, and the same lines."""
    return text[:start] + "\n" * text.count("\n", start, end) + text[end:]


def without_tests(text: str) -> str:
    while item := TEST_ITEM.search(text):
        semicolon, brace = (len(text) if at < 0 else at for at in (text.find(";", item.end()), text.find("{", item.end())))
        end = semicolon + 1
        if brace < semicolon:
            line_end = text.find("\n", brace) % (len(text) + 1)
            line = text[brace:line_end]
            last = re.compile(rf"^{item[1]}\}}", re.MULTILINE).search(text, brace)
            is_one_line = line.count("{") == line.count("}")
            end = line_end if is_one_line or not last else last.end()
        text = without(text, item.start(), end)
    return text


def read(path: Path) -> str:
    text = without_tests(path.read_text())
    return COMMENT.sub("", text)


def modules_of(source: Path) -> dict[Module, Path]:
    """The files of a crate by module path; tests are left out."""
    found, tests = {}, set()
    for path in sorted(source.rglob("*.rs")):
        parts = list(path.relative_to(source).with_suffix("").parts)
        if parts[-1] in ("mod", "lib", "main"):
            parts.pop()
        found[tuple(parts)] = path
        tests |= {(*parts, name) for name in TEST_FILE.findall(path.read_text())}
    return {module: path for module, path in found.items()
            if not any(module[:end] in tests for end in range(len(module) + 1))}


def whole_path(text: str, start: int) -> str:
    """The path or tree of paths that begins at `start`."""
    depth, end = 0, start
    while end < len(text):
        letter = text[end]
        if depth == 0 and not re.match(r"[\w:{*]", letter):
            break
        depth += {"{": 1, "}": -1}.get(letter, 0)
        end += 1
        if depth == 0 and letter == "}":
            break
    return text[start:end]


def spread(text: str) -> list[str]:
    """`a::{b, c::d}` as `a::b` and `a::c::d`; `a as b` as `a@b`."""
    text = re.sub(r"\s+", "", re.sub(r"\s+as\s+", "@", text))
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


class Crate:
    def __init__(self, source: Path) -> None:
        self.files = modules_of(source)
        self.texts = {module: read(path) for module, path in self.files.items()}
        self.imported = {module: self.imports_of(module) for module in self.files}

    def absolute(self, module: Module, path: str) -> Module | None:
        """What a path in a `use` of a module names, from the root of the crate; None: something of another crate."""
        names = tuple(path.split("::"))
        above = 0
        while above < len(names) and names[above] == "super":
            above += 1
        if above:
            return module[: len(module) - above] + names[above:]
        if names[0] == "crate":
            return names[1:]
        if names[0] == "self":
            return module + names[1:]
        return module + names if module + names[:1] in self.files else None

    def imports_of(self, module: Module) -> dict[str, list[Module]]:
        """What a module brings in with `use`: the name in this module -> what it names. `*`: all of a module."""
        found = defaultdict(list)
        for tree in IMPORT.findall(self.texts[module]):
            for path in spread(tree):
                path, _, other = path.partition("@")
                target = self.absolute(module, path)
                if target:
                    target = target[:-1] if target[-1] == "self" else target
                    found[other or (target or ("",))[-1]].append(target)
        return found

    def definer(self, names: Module, seen: frozenset[Module] = frozenset()) -> Module | None:
        """The module that defines what a path names, behind all re-exports."""
        longest = max((names[:end] for end in range(len(names) + 1) if names[:end] in self.files), key=len, default=())
        rest = names[len(longest):]
        if not rest or rest[0] in ("*", "self") or names in seen:
            return longest
        seen |= {names}
        for target in self.imported.get(longest, {}).get(rest[0], ()):
            return self.definer(target + rest[1:], seen)
        for target in self.imported.get(longest, {}).get("*", ()):
            behind = self.definer(target[:-1] + rest[:1], seen)
            if behind in self.texts and re.search(DEFINITION % re.escape(rest[0]), self.texts[behind], re.MULTILINE):
                return behind
        return longest

    def uses(self, module: Module) -> list[tuple[Module, str, int]]:
        """The modules that a module uses, with what it names there, and the line."""
        text, found = self.texts[module], []
        for use in PATH.finditer(text):
            for path in spread(whole_path(text, use.end())):
                target = self.absolute(module, f"{use[1]}::{path.partition('@')[0]}")
                targets = [target]
                if target[-1:] == ("*",):
                    targets = [target[:-1] + (name,) for name in self.imported.get(target[:-1], ())
                               if re.search(rf"\b{re.escape(name)}\b", text)]
                line = line_of(text, use.start())
                found += [(self.definer(target), target[-1] if target else "crate", line) for target in targets]
        return found


def cycles(arrows: dict[str, set[str]]) -> list[set[str]]:
    """Strongly connected parts with more than one member."""
    def reached(start: str) -> set[str]:
        seen, waiting = set(), [start]
        while waiting:
            for target in arrows.get(waiting.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return seen

    reach = {name: reached(name) for name in arrows}
    found = []
    for name in sorted(arrows):
        cycle = {other for other in reach[name] if name in reach.get(other, ())}
        if len(cycle) > 1 and cycle not in found:
            found.append(cycle)
    return found


def cycles_of(source: Path) -> list[tuple[str, dict[tuple[str, str], list[str]]]]:
    """Cycles of a crate: the folder, and for each arrow in the cycle the places that make it."""
    crate = Crate(source)
    folders: dict[Module, dict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for module, path in crate.files.items():
        for used, name, line in crate.uses(module):
            common = 0
            while common < min(len(module), len(used)) and module[common] == used[common]:
                common += 1
            if common < min(len(module), len(used)):
                arrow = (module[common], used[common])
                folders[module[:common]][arrow].append(f"{path.relative_to(ROOT)}:{line}: {'::'.join(used)}::{name}")
    found = []
    for folder, arrows in sorted(folders.items()):
        targets = defaultdict(set)
        for one, other in arrows:
            targets[one].add(other)
        for cycle in cycles(targets):
            found.append(("/".join(folder), {arrow: places for arrow, places in arrows.items() if cycle >= set(arrow)}))
    return found


def main() -> int:
    sources = sorted(ROOT.glob("crates/*/*/src"))
    count = 0
    for source in sources:
        for folder, arrows in cycles_of(source):
            count += 1
            print(f"{source.parent.name}/{folder}: {', '.join(sorted({one for one, _ in arrows}))} use each other in a cycle")
            for (one, other), places in sorted(arrows.items()):
                print(f"  {one} -> {other}, {len(places)} uses:")
                print("\n".join(f"    {place}" for place in places))
    print(f"cycles of modules: {count} in {len(sources)} crates")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
