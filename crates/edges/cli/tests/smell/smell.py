#!/usr/bin/env python3
"""Failed runs with a known truth, and how `trackway explain --json` answers six questions about each.

    smell.py --program target/debug/trackway [--only NAME] [--keep DIR] [--show]

Each mechanism trains well once, then is broken in one way. The questions: what was the cause, what shows it, which checkpoint is safe, what differs
from the last good run, what did it cost, what to do next. A wrong answer counts once, a sentence that contradicts the truth twice. What an
explanation proposes is run. Exits with 1 below SCORE_MIN, with any contradiction, and with any proposed command that cannot work.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SCORE_MIN = 0.97
QUESTIONS = ["cause", "evidence", "safe", "changed", "cost", "next"]
# Longest a run may take.
RUN_SECONDS = 60

LOOP = """\
import json, math, os, pickle, random, signal, sys, time
c = json.load(open("c.json"))
rows = [line.split(",") for line in open("data.csv").read().split()[1:]]
random.seed(1)
w, start = [0.0, 0.0], 0
os.makedirs("out", exist_ok=True)
found = sorted((int(name[5:-4]), name) for name in os.listdir("out"))
if found:
    state = pickle.load(open(f"out/{found[-1][1]}", "rb"))
    w, start = state["model"], state["step"]
def evaluate(step):
    return 0.0
for step in range(start + 1, c["steps"] + 1):
    batch = rows[step % len(rows)]
    loss = c["scale"] / (1 + step / 20) + 0.01 * random.random() + 0 * float(batch[0])
    #HERE
    print(f"step {step} loss {loss:.5f}", flush=True)
    time.sleep(0.006)
    if step % 20 == 0:
        pickle.dump({"step": step, "model": [step, 1.0], "optimizer": {"m": [step]}}, open("out/ckpt-%d.pkl" % step, "wb"))
        time.sleep(0.12)
"""
RUN_FILE = """\
[run]
name = "r"
command = ["python3", "t.py", "c.json"]
[data.train]
path = "data.csv"
[checkpoint]
adopt = ["out/ckpt-*.pkl"]
[retry]
infrastructure = { attempts = 0 }
unknown = { attempts = 0 }
timeout = { attempts = 0 }
hang = { attempts = 0 }
checkpoint_error = { attempts = 0 }
code_error = { attempts = 0 }
"""
CONFIG = {"steps": 60, "scale": 2.0}
DATA = "x,label\n" + "".join(f"{i / 100:.2f},{i % 2}\n" for i in range(200))


def here(lines):
    """The loop with these lines where a step is trained."""
    body = "\n    ".join(lines.strip("\n").split("\n"))
    return LOOP.replace("#HERE", body)


def mechanism(name, expect, script=None, config=None, data=None, run_file="", during=None, options=(), good=True):
    return dict(
        name=name, expect=expect, script=script, config=config, data=data, run_file=run_file, during=during,
        options=options, good=good,
    )


def expect(cause, evidence, safe, changed, next_, lost=None, never=()):
    """What is right. `cause`: reasons, or who found what is unhealthy; `changed`: what must be named; `next_`: any of these is said."""
    return dict(cause=cause, evidence=evidence, safe=safe, changed=changed, next=next_, lost=lost, never=never)


SCRIPT = [r"script t\.py"]
AT_50 = "if step == 50: "

MECHANISMS = [
    mechanism("key_error", expect({"code_error"}, r"KeyError: 'momentum'", 40, SCRIPT, ["reproduce", "frame"], 9),
              here(AT_50 + "c['momentum']")),
    mechanism("type_error", expect({"code_error"}, r"TypeError", 40, SCRIPT, ["reproduce", "frame"], 9),
              here(AT_50 + "loss = 'a' + 1")),
    mechanism("import_error", expect({"code_error"}, r"No module named 'nothing_here'", None, SCRIPT, ["."]),
              "import nothing_here\n" + LOOP.replace("#HERE", "pass")),
    mechanism("syntax_error", expect({"code_error"}, r"SyntaxError|IndentationError", None, SCRIPT, ["."]),
              LOOP.replace("#HERE", "if True print(1)")),
    mechanism("assertion", expect({"code_error"}, r"AssertionError: batch of 3", 40, SCRIPT, ["reproduce", "frame"], 9),
              here(AT_50 + "assert False, 'batch of 3'")),
    mechanism("evaluation_inside", expect({"code_error"}, r"ValueError: shapes", 40, SCRIPT, ["reproduce", "frame"], 9,
                                          never=[r"training (attempt )?is (good|not affected)", r"eval run"]),
              here("evaluate(step)").replace("    return 0.0", "    if step == 50: raise ValueError('shapes (400,15) and (16,32) not aligned')\n    return 0.0")),
    mechanism("config_key", expect({"code_error"}, r"KeyError: 'steps'", None, [r"file c\.json: step"], ["."]),
              config={"stepz": 60, "scale": 2.0}),
    mechanism("config_value", expect({"loss_exploded", "unlike_earlier_runs", "loss_shift"}, r"loss", 60,
                                     [r"file c\.json: scale"], ["bless|learning rate|changed"],
                                     never=["no action is needed"]),
              config={"steps": 60, "scale": 400.0}),
    mechanism("data_missing", expect({"data_error", "code_error"}, r"No such file or directory: 'labels\.csv'", None, SCRIPT, ["data|file"]),
              LOOP.replace("random.seed(1)", "open('labels.csv')").replace("#HERE", "pass")),
    mechanism("data_text", expect({"data_error", "code_error"}, r"could not convert string to float|ValueError", 20,
                                  [r"data"], ["data|rows|reproduce"], 19),
              data=DATA.replace("0.40,0", "abc,0")),
    mechanism("schema_drift", expect({"schema_drift", "data_error", "code_error"}, r"KeyError: 'x'", None, [r"data|script"], ["."]),
              'import csv\nfor row in csv.DictReader(open("data.csv")): row["x"]\n' + LOOP.replace("#HERE", "pass"),
              data=DATA.replace("x,label", "xx,label")),
    mechanism("nan_loss", expect({"numeric_divergence"}, r"NaN", 40, SCRIPT, ["learning rate|diagnose|rollback"], None,
                                 never=["no action is needed", "resume.* from step 60"]),
              here("if step > 45: loss = math.nan")),
    mechanism("exploded", expect({"loss_exploded", "loss_spike", "loss_shift", "numeric_divergence"}, r"loss", None, SCRIPT,
                                 ["learning rate|bless"], None, never=["no action is needed"]),
              here("loss = 2.0 if step < 3 else 5e17 if step < 30 else 548.0")),
    mechanism("chance_level", expect({"chance_level"}, r"guess", None, SCRIPT, ["label|frozen|learning rate"], None,
                                     never=["no action is needed"]),
              here("loss = math.log(10) + 0.01 * random.gauss(0, 1)")),
    mechanism("plateau", expect({"plateau", "unlike_earlier_runs"}, r"loss", 60, SCRIPT, ["learning rate|bless|changed"], None,
                                never=["no action is needed"]),
              here("loss = 1.731 + 0.003 * random.gauss(0, 1)")),
    mechanism("overfit", expect({"generalization_gap", "validation_divergence"}, r"val", 60, SCRIPT, ["stop earlier|data|regular"],
                                None, never=["no action is needed"]),
              here("loss = 0.02 / step; print(f'step {step} val_loss {4 + step / 1000:.4f}')")),
    mechanism("memory_error", expect({"host_oom"}, r"MemoryError", 40, SCRIPT, ["memory|batch"], 9),
              here(AT_50 + "raise MemoryError('Unable to allocate 93.1 GiB')")),
    mechanism("device_oom", expect({"device_oom"}, r"CUDA out of memory", 40, SCRIPT, ["batch|memory"], 9),
              here(AT_50 + "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB')")),
    mechanism("disk_full", expect({"storage_error"}, r"No space left on device", 40, SCRIPT, ["space|disk|free"], 9),
              here(AT_50 + "raise OSError(28, 'No space left on device', 'out/ckpt-60.pkl')")),
    mechanism("permission", expect({"storage_error", "code_error"}, r"Permission denied", 40, SCRIPT, ["."], 9),
              here(AT_50 + "raise PermissionError(13, 'Permission denied', 'out/ckpt-60.pkl')")),
    mechanism("network", expect({"network_error"}, r"Connection refused|ConnectionRefusedError", 40, SCRIPT, ["network|resume|."], 9),
              here(AT_50 + "import socket; socket.create_connection(('127.0.0.1', 1))")),
    mechanism("sigkill", expect({"host_oom", "unknown", "node_failure"}, r"SIGKILL|signal 9", 40, SCRIPT, ["resume"], 9),
              here(AT_50 + "os.kill(os.getpid(), 9)")),
    mechanism("sigsegv", expect({"code_error", "unknown", "node_failure"}, r"SIGSEGV|signal 11|egmentation", 40, SCRIPT, ["."], 9),
              here(AT_50 + "os.kill(os.getpid(), 11)")),
    mechanism("sigterm", expect({"unknown", "preempted", "cancelled"}, r"SIGTERM|signal 15", 40, SCRIPT, ["resume"], 9),
              here(AT_50 + "os.kill(os.getpid(), 15)")),
    mechanism("interrupt", expect({"cancelled"}, r"SIGINT", None, SCRIPT, ["resume|on request"]),
              LOOP.replace("#HERE", "pass").replace("time.sleep(0.006)", "time.sleep(0.08)"), during=signal.SIGINT),
    mechanism("hang", expect({"hang"}, r"no (progress|step)|quiet|SIGKILL|stopped|stuck|hang", 40, SCRIPT, ["diagnose|stack|resume"], 9),
              here(AT_50 + "time.sleep(600)"), run_file='[supervise]\nhang_after = "3s"\ngrace = "1s"\n'),
    mechanism("hang_at_start", expect({"hang"}, r"no|first step", None, SCRIPT, ["diagnose|stack|start|worker|."]),
              "import time\nprint('loading', flush=True); time.sleep(600)\n", run_file='[supervise]\nstart_within = "3s"\ngrace = "1s"\n'),
    mechanism("load_fails", expect({"checkpoint_error", "code_error"}, r"size mismatch|RuntimeError", None, SCRIPT, ["."]),
              here("raise RuntimeError('Error(s) in loading state_dict for Net:\\n\\tsize mismatch for fc.weight: copying a param with shape torch.Size([10, 5]) from checkpoint, the shape in current model is torch.Size([12, 5]).')")),
    mechanism("torn_checkpoint", expect({"checkpoint_error", "code_error", "data_error"}, r"EOFError|UnpicklingError|pickle", None, SCRIPT, ["."]),
              LOOP.replace("random.seed(1)", "random.seed(1); open('w.pkl', 'wb').write(b'\\x80\\x04\\x95\\x10'); pickle.load(open('w.pkl', 'rb'))").replace("#HERE", "pass")),
    mechanism("own_exit", expect({"code_error", "unknown"}, r"exit|code 3", 40, SCRIPT, ["."], 9),
              here(AT_50 + "sys.exit(3)")),
    mechanism("time_limit", expect({"timeout", "budget_exhausted"}, r"timeout` of 4 s", None, SCRIPT, ["."]),
              here("time.sleep(0.3)"), run_file='[supervise]\ntimeout = "4s"\ngrace = "1s"\n'),
]


class Home:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        folder.mkdir(parents=True)
        keep = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
        self.environment = {name: os.environ[name] for name in keep if name in os.environ}

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def trackway(self, *arguments, during=None):
        child = subprocess.Popen([self.program, *arguments], cwd=self.folder, env=self.environment, text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if during is not None:
            deadline = time.time() + RUN_SECONDS
            while not (self.folder / "out").exists() and time.time() < deadline:
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


def grade(truth, page):
    """Which questions are answered rightly, and which sentences contradict the truth."""
    termination = page["termination"] or {}
    report = (page.get("health") or {}).get("report") or {}
    findings = report.get("findings") or []
    causes = {termination.get("reason")} | {finding["found_by"] for finding in findings}
    shown = [item["text"] for item in termination.get("evidence", [])[:1]] + [finding["evidence"] for finding in findings[:1]]
    diff = page["since_last_good"] or {"changes": [], "unknown": []}
    changes = [f"{change['kind']} {change.get('key') or ''}" for change in diff["changes"]]
    cost = page["cost"]
    right = {
        "cause": bool(causes & truth["cause"]),
        "evidence": any(re.search(truth["evidence"], text, re.IGNORECASE) for text in shown),
        "safe": page["standing"]["safe_step"] == truth["safe"],
        "changed": all(any(re.search(name, text) for text in changes) for name in truth["changed"])
        and (bool(truth["changed"]) or not changes),
        "cost": cost["run_wall_seconds"] > 0 and (truth["lost"] is None or cost["lost_steps"] == truth["lost"]),
        "next": any(re.search(name, text, re.IGNORECASE) for text in page["next_actions"] for name in truth["next"]),
    }
    never = [*truth["never"]] + (["no difference"] if truth["changed"] else [])
    contradicted = [text for text in said(page) for name in never if re.search(name, text)]
    got = {"cause": sorted(filter(None, causes)), "evidence": shown, "safe": page["standing"]["safe_step"],
           "changed": changes, "cost": cost["lost_steps"], "next": page["next_actions"]}
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


def play(program, root, one, with_commands):
    home = Home(program, root / one["name"])
    home.write("t.py", LOOP.replace("#HERE", "pass"))
    home.write("c.json", json.dumps(CONFIG))
    home.write("data.csv", DATA)
    home.write("r.toml", RUN_FILE + one["run_file"])
    if one["good"]:
        code, _, err = home.trackway("run", "--skip-preflight", "--why", "a test", "r.toml")
        if code != 0:
            raise SystemExit(f"{one['name']}: the good run ended with {code}: {err}")
    shutil.rmtree(home.folder / "out", ignore_errors=True)
    if one["script"]:
        home.write("t.py", one["script"])
    if one["config"]:
        home.write("c.json", json.dumps(one["config"]))
    if one["data"] == "":
        (home.folder / "data.csv").unlink()
    elif one["data"]:
        home.write("data.csv", one["data"])
    home.trackway("run", "--skip-preflight", "--why", "a test", *one["options"], "r.toml", during=one["during"])
    code, out, err = home.trackway("explain", "last", "--json")
    if code != 0:
        raise SystemExit(f"{one['name']}: explain ended with {code}: {err}")
    page = json.loads(out)
    useless, tried = try_commands(home, page) if with_commands else ([], 0)
    return one["name"], grade(one["expect"], page), useless, tried


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--only")
    arguments.add_argument("--keep")
    arguments.add_argument("--show", action="store_true")
    arguments.add_argument("--commands-of", type=int, default=1, metavar="N", help="run what every Nth explanation proposes; 0: none")
    chosen = arguments.parse_args()
    program = str(pathlib.Path(chosen.program).absolute())
    root = pathlib.Path(chosen.keep) if chosen.keep else pathlib.Path(tempfile.mkdtemp(prefix="smell-"))
    mechanisms = [one for one in MECHANISMS if not chosen.only or re.search(chosen.only, one["name"])]
    began = time.time()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        nth = chosen.commands_of
        tries = [nth > 0 and place % nth == 0 for place in range(len(mechanisms))]
        played = list(pool.map(lambda one, tried: play(program, root, one, tried), mechanisms, tries))
    rights = contradictions = useless_count = tried_count = 0
    for name, (right, contradicted, got), useless, tried in played:
        rights += sum(right.values())
        contradictions += len(contradicted)
        useless_count, tried_count = useless_count + len(useless), tried_count + tried
        marks = " ".join("✓" if right[question] else "✗" for question in QUESTIONS)
        print(f"{name:<20} {marks}", *(f"\n    contradicts: {text}" for text in contradicted), *(f"\n    does not work: {text}" for text in useless))
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
