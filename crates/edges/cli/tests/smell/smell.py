#!/usr/bin/env python3
"""Failed runs with a known truth, and how `trackway explain --json` answers six questions about each.

    smell.py --program target/debug/trackway [--kinds loop|few|all] [--without KIND] [--only NAME] [--keep DIR] [--show]

Each kind of training goes well once, then is broken in one way after another. The questions: what was the cause, what shows it, which checkpoint is
safe, what differs from the last good run, what did it cost, what to do next. A wrong answer counts once, a sentence that contradicts the truth twice,
advice that fits another cause among them.
What an explanation proposes is run. Exits with 1 below SCORE_MIN, with any contradiction, and with any proposed command that cannot work.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from kinds import KINDS
from mechanisms import CONFIG, DATA, MECHANISMS

SCORE_MIN = 0.99
QUESTIONS = ["cause", "evidence", "safe", "changed", "cost", "next"]
# Longest a run may take.
RUN_SECONDS = 120
# A mechanism of each framework, for every day.
FEW = {"trainer": ["nan_loss"], "lightning": ["evaluation_inside"], "booster": ["plateau"], "ranks": ["sigkill", "hang"]}


class Home:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        folder.mkdir(parents=True)
        keep = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
        self.environment = {name: os.environ[name] for name in keep if name in os.environ}
        # The scripts' Python, with its frameworks, is the one that runs this.
        self.environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{self.environment.get('PATH', '')}"

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def trackway(self, *arguments, during=None):
        child = subprocess.Popen([self.program, *arguments], cwd=self.folder, env=self.environment, text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if during is not None:
            deadline = time.time() + RUN_SECONDS / 2
            while not (self.folder / "out").exists() or not os.listdir(self.folder / "out") and time.time() < deadline:
                time.sleep(0.05)
            time.sleep(1.0)
            child.send_signal(during)
        out, err = child.communicate(timeout=RUN_SECONDS)
        return child.returncode, out, err


def said(page):
    """All sentences of an explanation that state or advise something."""
    sentences = list(page["next_actions"])
    if page["termination"]:
        sentences.append(page["termination"]["cause"])
    sentences += [line["text"] for line in page["short"]]
    return sentences


def grade(truth, page, took):
    """Which questions are answered rightly, and which sentences contradict the truth. `took`: seconds of the whole command."""
    termination = page["termination"] or {}
    report = (page.get("health") or {}).get("report") or {}
    findings = report.get("findings") or []
    causes = {termination.get("reason")} | {finding["found_by"] for finding in findings}
    shown = [item["text"] for item in termination.get("evidence", [])[:1]] + [finding["evidence"] for finding in findings[:1]]
    diff = page["since_last_good"] or {"changes": [], "unknown": []}
    changes = [f"{change['kind']} {change.get('key') or ''}".strip() for change in diff["changes"]]
    cost = page["cost"]
    right = {
        "cause": bool(causes & truth.cause),
        "evidence": any(re.search(truth.evidence, text, re.IGNORECASE) for text in shown),
        "safe": page["standing"]["safe_step"] == truth.safe,
        "changed": truth.changed_is_right(changes),
        "cost": truth.cost_is_right(cost, took),
        "next": all(any(re.search(name, text, re.IGNORECASE) for text in page["next_actions"]) for name in truth.next),
    }
    contradicted = [f"`{name}` in: {text}" for text in said(page) for name in truth.contradictions() if re.search(name, text, re.IGNORECASE)]
    got = {"cause": sorted(filter(None, causes)), "evidence": shown, "safe": page["standing"]["safe_step"],
           "changed": changes, "cost": {**cost, "took": took}, "next": page["next_actions"]}
    return right, contradicted, got


COMMAND = re.compile(r"(?:^|[ `])(trackway [^`;,]+)")
# What a sentence leaves to the reader.
PLACEHOLDERS = {"FILE": "r.toml", "TEXT": "because"}
TABLE = "data.csv"
# Exit codes of a command that cannot work there: a fault, wrong usage, not found.
USELESS = {1, 2, 6}
# These launch jobs for minutes, or follow one for ever.
LONG = {"diagnose", "watch"}


def commands(page):
    """The commands that are proposed, as words, without those that take long."""
    found = []
    for action in page["next_actions"]:
        # What is to be repaired first is not repaired here.
        if action.startswith("when "):
            continue
        for text in COMMAND.findall(action):
            for part in text.split(" && "):
                words = [PLACEHOLDERS.get(word, word) for word in part.split()[1:]]
                if words[:1] == ["data"]:
                    words = [TABLE if word == "r.toml" else word for word in words]
                if words and words[0] not in LONG:
                    found.append(words)
    return found


def try_commands(home, page):
    """Runs each proposed command in the home as it is now. Returns those that do not work there."""
    useless = []
    kept = home.folder.with_name(home.folder.name + ".kept")
    for words in commands(page):
        shutil.copytree(home.folder, kept, symlinks=True)
        try:
            code, _, err = home.trackway(*words)
            if code in USELESS:
                useless.append(f"`trackway {' '.join(words)}` ends with {code}: {err.strip()[-300:]}")
        except subprocess.TimeoutExpired:
            useless.append(f"`trackway {' '.join(words)}` does not end")
        shutil.rmtree(home.folder, ignore_errors=True)
        kept.rename(home.folder)
    return useless, len(commands(page))


def play(home, kind, one, with_commands):
    """Breaks the training of a home, which went well before, in one way."""
    shutil.rmtree(home.folder / "out", ignore_errors=True)
    home.write("t.py", kind.script_of(one))
    home.write("c.json", json.dumps(one.config))
    home.write("data.csv", one.data)
    home.write("r.toml", kind.run_file(one.run_file))
    began = time.monotonic()
    home.trackway("run", "--skip-preflight", "--why", "a test", "r.toml", during=one.during)
    took = time.monotonic() - began
    code, out, err = home.trackway("explain", "last", "--json")
    if code != 0:
        raise SystemExit(f"{kind.name} {one.name}: explain ended with {code}: {err}")
    page = json.loads(out)
    useless, tried = try_commands(home, page) if with_commands else ([], 0)
    return kind.name, one.name, grade(kind.truth_of(one), page, took), useless, tried


def play_all(program, root, kind, mechanisms, with_commands):
    """Plays mechanisms one after another, after one run of the same name that goes well."""
    home = Home(program, root / f"{kind.name}-{mechanisms[0].name}")
    home.write("t.py", kind.script())
    home.write("c.json", json.dumps(CONFIG))
    home.write("data.csv", DATA)
    home.write("r.toml", kind.run_file())
    code, out, err = home.trackway("run", "--skip-preflight", "--why", "a test", "r.toml")
    if code != 0:
        raise SystemExit(f"{kind.name}: the good run ended with {code}: {out}{err}")
    return [play(home, kind, one, with_commands) for one in mechanisms]


def groups(chosen):
    """Kind and mechanisms of each home: a home for each mechanism of plain loops, which start at once, and one for all of a framework."""
    for kind in KINDS:
        if kind.name in chosen.without:
            continue
        wanted = [one for one in MECHANISMS if not chosen.only or re.search(chosen.only, one.name)]
        if kind.name == "loop":
            yield from ((kind, [one]) for one in wanted if chosen.kinds in ("loop", "all"))
            continue
        if chosen.kinds == "few":
            wanted = [one for one in wanted if one.name in FEW[kind.name]]
        elif chosen.kinds != "all" and chosen.kinds != kind.name:
            continue
        missing = [module for module in kind.modules if importlib.util.find_spec(module) is None]
        if missing:
            raise SystemExit(f"{kind.name} needs {', '.join(missing)}, which this Python does not have")
        if wanted:
            yield kind, wanted


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--kinds", default="loop", choices=["few", "all", *(kind.name for kind in KINDS)])
    arguments.add_argument("--without", nargs="*", default=[], help="kinds that are left out")
    arguments.add_argument("--only", help="mechanisms whose names have this")
    arguments.add_argument("--keep", help="a folder for the homes, which are then left there")
    arguments.add_argument("--show", action="store_true", help="print each answer")
    arguments.add_argument("--commands-of", type=int, default=1, metavar="N", help="run what every Nth home's explanations propose; 0: none")
    chosen = arguments.parse_args()
    program = str(pathlib.Path(chosen.program).absolute())
    root = pathlib.Path(chosen.keep) if chosen.keep else pathlib.Path(tempfile.mkdtemp(prefix="smell-"))
    began = time.time()
    # The longest first.
    homes = sorted(groups(chosen), key=lambda group: -len(group[1]))
    nth = chosen.commands_of
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        playing = [pool.submit(play_all, program, root, kind, mechanisms, nth > 0 and place % nth == 0)
                   for place, (kind, mechanisms) in enumerate(homes)]
        played = [one for home in playing for one in home.result()]
    rights = contradictions = useless_count = tried_count = 0
    for kind, name, (right, contradicted, got), useless, tried in played:
        rights += sum(right.values())
        contradictions += len(contradicted)
        useless_count, tried_count = useless_count + len(useless), tried_count + tried
        marks = " ".join("✓" if right[question] else "✗" for question in QUESTIONS)
        print(f"{kind:<10} {name:<20} {marks}", *(f"\n    contradicts: {text}" for text in contradicted),
              *(f"\n    does not work: {text}" for text in useless))
        for question in QUESTIONS:
            if not right[question] or chosen.show:
                print(f"    {question}: {got[question]}")
    answers = len(played) * len(QUESTIONS)
    score = (rights - 2 * contradictions) / answers
    print(f"{tried_count} proposed commands were run, {useless_count} do not work")
    print(f"{rights} of {answers} answers right, {contradictions} contradicted: {score:.1%} in {time.time() - began:.0f} s")
    if not chosen.keep:
        shutil.rmtree(root, ignore_errors=True)
    sys.exit(0 if score >= SCORE_MIN and not contradictions and not useless_count else 1)


if __name__ == "__main__":
    main()
