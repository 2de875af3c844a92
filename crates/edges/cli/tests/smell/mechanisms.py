"""What is broken, and what an explanation must then say."""

import dataclasses
import re
import signal

CONFIG = {"steps": 60, "scale": 2.0}
DATA = "x,label\n" + "".join(f"{i / 100:.2f},{i % 2}\n" for i in range(200))
# The line of the script, or of the settings, or of the data that differs.
SCRIPT = [r"script t\.py"]
AT_50 = "if step == 50: "
# What a step, and what a checkpoint, sleeps in `kinds.py`.
STEP_SECONDS, SAVE_SECONDS = 0.006, 0.12
# Advice that fits some causes and misleads at all others.
ADVICE = {
    "memory": r"smaller batch|larger memory|less prefetch|memory over time|when more memory",
    "space": r"free space|space is freed|quota raised|raise the quota",
    "right": r"right to what was refused",
    "rate": r"learning rate",
    "network": r"peer reachable|download models",
    "rows": r"quarantine|find the rows",
    "wait": r"trackway diagnose|where it waits",
    "limit": r"raise the time limit",
    "request": r"ended on request",
    "native": r"native code",
    "torn": r"torn or damaged",
    "evaluation": r"trackway eval run|training (attempt )?is (good|not affected)",
}
# Sentences that name nothing: no pattern of a truth may find them.
FILLER = ["no", "no step", "look at it", "resume", "there is a loss, and data or a file"]


@dataclasses.dataclass(frozen=True)
class Truth:
    """What is right. `cause`: reasons, or who found what is unhealthy; `changed`: what is named, all of it and nothing else; `next`: each of
    these is said; `lost`: steps after the safe checkpoint, between two numbers; None: nothing is lost, or no step was made; `seconds`: what the
    script surely takes; `may`: whose ADVICE fits; `never`: what else contradicts it."""

    cause: frozenset
    evidence: str
    safe: int | None
    changed: tuple
    next: tuple
    lost: tuple | None = None
    seconds: float = 0.0
    may: tuple = ()
    never: tuple = ()

    def __post_init__(self):
        for pattern in (self.evidence, *self.next):
            if any(re.search(pattern, text, re.IGNORECASE) for text in FILLER):
                raise ValueError(f"`{pattern}` accepts a sentence that names nothing")

    def contradictions(self):
        """What no sentence may say."""
        other = [pattern for name, pattern in ADVICE.items() if name not in self.may]
        only = "" if self.safe is None else rf"(?!{self.safe}\b)"
        checkpoint = [rf"(from|of) (the checkpoint of )?step {only}\d+.*trackway resume", rf"--to-step {only}\d"]
        return [*self.never, *other, *checkpoint, "no action is needed", "no difference"]

    def cost_is_right(self, cost, took):
        """`took`: what the whole command took."""
        counts = all(self.seconds / 2 <= cost[name] <= took and cost[name] > 0 for name in ("wall_seconds", "run_wall_seconds"))
        lost = [cost["lost_steps"], cost["run_lost_steps"]]
        return counts and all(self.lost is None and one is None or None not in (self.lost, one) and self.lost[0] <= one <= self.lost[1] for one in lost)

    def changed_is_right(self, changes):
        """Each that is true is named, and each that is named is true."""
        named = all(any(re.fullmatch(name, text) for text in changes) for name in self.changed)
        return named and all(any(re.fullmatch(name, text) for name in self.changed) for text in changes)


@dataclasses.dataclass(frozen=True)
class Mechanism:
    """`top`, `step`, `evaluation`: lines of the script; `one_rank`: only one process of several does it; `during`: a signal that its user sends."""

    name: str
    truth: Truth
    top: str = ""
    step: str = "pass"
    evaluation: str = "pass"
    config: dict = dataclasses.field(default_factory=lambda: CONFIG)
    data: str = DATA
    run_file: str = ""
    during: int | None = None
    one_rank: bool = False


def seconds_until(step):
    return step * STEP_SECONDS + step // 20 * SAVE_SECONDS


def truth(cause, evidence, safe, changed, next_, lost=None, seconds=0.0, may=(), never=()):
    lost = (lost, lost) if isinstance(lost, int) else lost
    return Truth(frozenset(cause), evidence, safe, tuple(changed), tuple(next_), lost, seconds, tuple(may), tuple(never))


def raised(name, statement, cause, evidence, next_, may=(), seconds=0.0, changed=SCRIPT):
    """What is raised, or done, at step 50 by one process: the checkpoint of step 40 is safe, and 9 steps are lost."""
    seconds += seconds_until(49)
    return Mechanism(name, truth(cause, evidence, 40, changed, [*next_, RESUME_40], 9, seconds, may), step=AT_50 + statement, one_rank=True)


def at_start(name, statement, cause, evidence, next_, changed=SCRIPT, data=DATA, may=(), seconds=0.0):
    return Mechanism(name, truth(cause, evidence, None, changed, next_, seconds=seconds, may=may), top=statement, data=data)


def ended_well(name, cause, evidence, next_, safe=60, changed=SCRIPT, config=CONFIG, step="pass"):
    """Trained to its end, and not well: nothing is lost, and it may be said to be good."""
    known = truth(cause, evidence, safe, changed, [*next_, "trackway runs bless run_"], seconds=seconds_until(60), may=["rate"])
    return Mechanism(name, known, step=step, config=config)


MISMATCH = (
    r"Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: copying a param with shape torch.Size([10, 5]) from checkpoint, "
    r"the shape in current model is torch.Size([12, 5])."
)
RESUME_20 = r"step 20\b.*trackway resume run_"
RESUME_40 = r"step 40\b.*trackway resume run_"
CODE = [r"\bt\.py\b|deciding line|traceback"]
# What ended it by a signal is not known.
SIGNALLED = [r"signal|scheduler|launcher"]
LIMITS = [r"setting supervise\.start_within_seconds", r"setting supervise\.grace_seconds"]

MECHANISMS = [
    raised("key_error", "c['momentum']", {"code_error"}, r"KeyError: 'momentum'", CODE),
    raised("type_error", "loss = 'a' + 1", {"code_error"}, r"TypeError: can only concatenate", CODE),
    at_start("import_error", "import nothing_here", {"code_error"}, r"No module named 'nothing_here'", [r"install|correct its name"]),
    at_start("syntax_error", "if True print(1)", {"code_error"}, r"SyntaxError|IndentationError", [r"\bline\b"]),
    raised("assertion", "assert False, 'batch of 3'", {"code_error"}, r"AssertionError: batch of 3", CODE),
    Mechanism("evaluation_inside",
              truth({"code_error"}, r"ValueError: shapes", 40, SCRIPT, [*CODE, RESUME_40], 9, seconds_until(49)),
              step="evaluate(step)", evaluation="if step == 50: raise ValueError('shapes (400,15) and (16,32) not aligned')"),
    Mechanism("config_key",
              truth({"code_error"}, r"KeyError: 'steps'", None, [r"file c\.json: steps", r"file c\.json: stepz"], [r"c\.json.*\bsteps\b"]),
              config={"stepz": 60, "scale": 2.0}),
    ended_well("config_value", {"loss_exploded", "unlike_earlier_runs", "loss_shift"}, r"loss.*\b[1-4]\d\d(\.\d+)?\b", [r"c\.json.*scale"],
               changed=[r"file c\.json: scale"], config={"steps": 60, "scale": 400.0}),
    at_start("data_missing", "open('labels.csv')", {"data_error", "code_error"}, r"No such file or directory: 'labels\.csv'",
             [r"correct the path|create .*missing|labels\.csv"]),
    Mechanism("data_text",
              truth({"data_error", "code_error"}, r"could not convert string to float: 'abc'", 20, [r"data train", r"data train: data\.csv"],
                    [r"named file or row|quarantine|data check", RESUME_20], 19, seconds_until(39), ["rows"]),
              data=DATA.replace("0.40,0", "abc,0")),
    at_start("schema_drift", 'import csv\nfor row in csv.DictReader(open("data.csv")): row["x"]', {"schema_drift", "data_error", "code_error"},
             r"KeyError: 'x'", [r"\bx\b.*\bxx\b"], data=DATA.replace("x,label", "xx,label"), may=["rows"],
             changed=[*SCRIPT, r"data train", r"data train: data\.csv", r"data train: schema\.\[0\]\.name"]),
    # It may train to its end before it is ended.
    Mechanism("nan_loss",
              truth({"numeric_divergence"}, r"NaN", 40, SCRIPT, [r"learning rate|clip|for NaN", r"--to-step 40\b.*trackway resume run_"], (6, 20),
                    seconds_until(50), ["rate"]),
              step="if step > 45: loss = math.nan"),
    ended_well("exploded", {"loss_exploded", "loss_spike", "loss_shift", "numeric_divergence"}, r"loss.*(5(\.0+)?e\+?17|\b548\b)",
               [r"learning rate|clip"], safe=None, step="loss = 2.0 if step < 3 else 5e17 if step < 30 else 548.0"),
    ended_well("chance_level", {"chance_level"}, r"guess.*2\.3", [r"labels|frozen|detached"], safe=None,
               step="loss = math.log(10) + 0.01 * random.gauss(0, 1)"),
    ended_well("plateau", {"plateau", "unlike_earlier_runs"}, r"loss.*1\.7[23]", [r"learning rate|gradients|\bt\.py\b"],
               step="loss = 1.731 + 0.003 * random.gauss(0, 1)"),
    ended_well("overfit", {"generalization_gap", "validation_divergence"}, r"val.*\b4\.0", [r"stop earlier|more data|regulari[sz]e"],
               step="loss = 0.02 / step; print(f'step {step} val_loss {4 + step / 1000:.4f}', flush=True)"),
    raised("memory_error", "raise MemoryError('Unable to allocate 93.1 GiB')", {"host_oom"}, r"MemoryError", [r"\barray\b|batch|leak"], ["memory"]),
    raised("device_oom", "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB')",
           {"device_oom"}, r"CUDA out of memory", [r"smaller batch|accumulation"], ["memory"]),
    raised("disk_full", "raise OSError(28, 'No space left on device', 'out/ckpt-60.pkl')", {"storage_error"}, r"No space left on device",
           [r"free space|space is freed"], ["space"]),
    raised("quota_said", "raise RuntimeError('disk quota exceeded')", {"code_error"}, r"disk quota exceeded", CODE),
    raised("permission", "raise PermissionError(13, 'Permission denied', 'out/ckpt-60.pkl')", {"storage_error"}, r"Permission denied",
           [r"\bright\b|permission|credential"], ["right"]),
    raised("network", "import socket; socket.create_connection(('127.0.0.1', 1))", {"network_error"}, r"Connection refused|ConnectionRefusedError",
           [r"reachable|address|\bport\b"], ["network"]),
    raised("sigkill", "os.kill(os.getpid(), 9)", {"unknown"}, r"SIGKILL|signal 9|exitcode: -9", SIGNALLED),
    raised("sigsegv", "os.kill(os.getpid(), 11)", {"code_error", "unknown"}, r"SIGSEGV|signal 11|exitcode: -11|egmentation", [r"native|faulthandler"],
           ["native"]),
    raised("sigterm", "os.kill(os.getpid(), 15)", {"unknown"}, r"SIGTERM|signal 15|exitcode: -15", SIGNALLED),
    Mechanism("interrupt",
              truth({"cancelled"}, r"SIGINT", 20, [r"file c\.json: seconds"], [r"on request", RESUME_20], (1, 19), 3.0, ["request"]),
              config={**CONFIG, "seconds": 0.1}, during=signal.SIGINT),
    dataclasses.replace(
        raised("hang", "time.sleep(600)", {"hang"}, r"no (step|progress|heartbeat).*\b3 s\b", [r"trackway diagnose att_"], ["wait"], 3.0,
               [*SCRIPT, *LIMITS, r"setting supervise\.hang_after_seconds"]),
        run_file='[supervise]\nhang_after = "3s"\nstart_within = "60s"\ngrace = "1s"\n'),
    dataclasses.replace(
        at_start("hang_at_start", "import time\nprint('loading', flush=True); time.sleep(600)", {"hang"},
                 r"no (step|progress|heartbeat|first step).*\b3 s\b.*(launch|start)", [r"trackway diagnose att_"], [*SCRIPT, *LIMITS], may=["wait"],
                 seconds=3.0),
        run_file='[supervise]\nstart_within = "3s"\ngrace = "1s"\n'),
    Mechanism("load_fails", truth({"checkpoint_error", "code_error"}, r"size mismatch", None, SCRIPT, [r"\bmodel\b.*(size|version)|loads the checkpoint"]),
              step=f"raise RuntimeError('{MISMATCH}')"),
    at_start("torn_checkpoint", "import pickle; open('w.pkl', 'wb').write(b'\\x80\\x04\\x95\\x10'); pickle.load(open('w.pkl', 'rb'))",
             {"checkpoint_error", "code_error", "data_error"}, r"EOFError|UnpicklingError", [r"torn|damaged|older one"], may=["torn"]),
    raised("own_exit", "sys.exit(3)", {"code_error", "unknown"}, r"code:? 3\b", [r"last lines|\bt\.py\b"]),
    Mechanism("time_limit",
              truth({"timeout", "budget_exhausted"}, r"timeout` of \d+ s", None, [*SCRIPT, r"setting supervise\.(timeout|grace)_seconds"],
                    [r"raise the .*limit|work smaller"], (5, 9), 4.0, ["limit", "wait"]),
              step="time.sleep(3 if step > 5 else 0)", run_file='[supervise]\ntimeout = "TIMEOUT s"\ngrace = "1s"\n'),
]
