"""What is broken, and what an explanation must then say."""

import dataclasses
import signal

CONFIG = {"steps": 60, "scale": 2.0}
DATA = "x,label\n" + "".join(f"{i / 100:.2f},{i % 2}\n" for i in range(200))
# The line of the script, or of the settings, or of the data that differs.
SCRIPT = [r"script t\.py"]
AT_50 = "if step == 50: "


@dataclasses.dataclass(frozen=True)
class Truth:
    """What is right. `cause`: reasons, or who found what is unhealthy; `changed`: what must be named; `next`: any of these is said;
    `lost`: steps after the safe checkpoint, where they are known to the step; `never`: what contradicts it."""

    cause: frozenset
    evidence: str
    safe: int | None
    changed: tuple
    next: tuple
    lost: int | None = None
    never: tuple = ()


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


def truth(cause, evidence, safe, changed, next_, lost=None, never=()):
    return Truth(frozenset(cause), evidence, safe, tuple(changed), tuple(next_), lost, tuple(never))


def raised(name, statement, cause, evidence, next_, never=()):
    """What is raised, or done, at step 50 by one process."""
    return Mechanism(name, truth(cause, evidence, 40, SCRIPT, next_, 9, never), step=AT_50 + statement, one_rank=True)


def at_start(name, statement, cause, evidence, next_, changed=SCRIPT, data=DATA):
    return Mechanism(name, truth(cause, evidence, None, changed, next_), top=statement, data=data)


MISMATCH = (
    r"Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: copying a param with shape torch.Size([10, 5]) from checkpoint, "
    r"the shape in current model is torch.Size([12, 5])."
)
REPRODUCE = ["reproduce", "frame"]
NO_ACTION = ["no action is needed"]

MECHANISMS = [
    raised("key_error", "c['momentum']", {"code_error"}, r"KeyError: 'momentum'", REPRODUCE),
    raised("type_error", "loss = 'a' + 1", {"code_error"}, r"TypeError", REPRODUCE),
    at_start("import_error", "import nothing_here", {"code_error"}, r"No module named 'nothing_here'", ["."]),
    at_start("syntax_error", "if True print(1)", {"code_error"}, r"SyntaxError|IndentationError", ["."]),
    raised("assertion", "assert False, 'batch of 3'", {"code_error"}, r"AssertionError: batch of 3", REPRODUCE),
    Mechanism("evaluation_inside",
              truth({"code_error"}, r"ValueError: shapes", 40, SCRIPT, REPRODUCE, 9, never=[r"training (attempt )?is (good|not affected)", r"eval run"]),
              step="evaluate(step)", evaluation="if step == 50: raise ValueError('shapes (400,15) and (16,32) not aligned')"),
    Mechanism("config_key", truth({"code_error"}, r"KeyError: 'steps'", None, [r"file c\.json: step"], ["."]),
              config={"stepz": 60, "scale": 2.0}),
    Mechanism("config_value",
              truth({"loss_exploded", "unlike_earlier_runs", "loss_shift"}, r"loss", 60, [r"file c\.json: scale"],
                    ["bless|learning rate|changed"], never=NO_ACTION),
              config={"steps": 60, "scale": 400.0}),
    at_start("data_missing", "open('labels.csv')", {"data_error", "code_error"}, r"No such file or directory: 'labels\.csv'", ["data|file"]),
    Mechanism("data_text",
              truth({"data_error", "code_error"}, r"could not convert string to float|ValueError", 20, [r"data"], ["data|rows|reproduce"], 19),
              data=DATA.replace("0.40,0", "abc,0")),
    at_start("schema_drift", 'import csv\nfor row in csv.DictReader(open("data.csv")): row["x"]', {"schema_drift", "data_error", "code_error"},
             r"KeyError: 'x'", ["."], changed=[r"data|script"], data=DATA.replace("x,label", "xx,label")),
    Mechanism("nan_loss",
              truth({"numeric_divergence"}, r"NaN", 40, SCRIPT, ["learning rate|diagnose|rollback"], lost=20, never=[*NO_ACTION, "resume.* from step 60", "--to-step 20"]),
              step="if step > 45: loss = math.nan"),
    Mechanism("exploded",
              truth({"loss_exploded", "loss_spike", "loss_shift", "numeric_divergence"}, r"loss", None, SCRIPT, ["learning rate|bless"],
                    never=NO_ACTION),
              step="loss = 2.0 if step < 3 else 5e17 if step < 30 else 548.0"),
    Mechanism("chance_level", truth({"chance_level"}, r"guess", None, SCRIPT, ["label|frozen|learning rate"], never=NO_ACTION),
              step="loss = math.log(10) + 0.01 * random.gauss(0, 1)"),
    Mechanism("plateau",
              truth({"plateau", "unlike_earlier_runs"}, r"loss", 60, SCRIPT, ["learning rate|bless|changed"], never=NO_ACTION),
              step="loss = 1.731 + 0.003 * random.gauss(0, 1)"),
    Mechanism("overfit",
              truth({"generalization_gap", "validation_divergence"}, r"val", 60, SCRIPT, ["stop earlier|data|regular"], never=NO_ACTION),
              step="loss = 0.02 / step; print(f'step {step} val_loss {4 + step / 1000:.4f}', flush=True)"),
    raised("memory_error", "raise MemoryError('Unable to allocate 93.1 GiB')", {"host_oom"}, r"MemoryError", ["memory|batch"]),
    raised("device_oom", "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB')",
           {"device_oom"}, r"CUDA out of memory", ["batch|memory"]),
    raised("disk_full", "raise OSError(28, 'No space left on device', 'out/ckpt-60.pkl')", {"storage_error"}, r"No space left on device",
           ["space|disk|free"]),
    raised("quota_said", "raise RuntimeError('disk quota exceeded')", {"code_error"}, r"disk quota exceeded", REPRODUCE,
           never=["quota raised|free space"]),
    raised("permission", "raise PermissionError(13, 'Permission denied', 'out/ckpt-60.pkl')", {"storage_error", "code_error"}, r"Permission denied",
           ["."]),
    raised("network", "import socket; socket.create_connection(('127.0.0.1', 1))", {"network_error"}, r"Connection refused|ConnectionRefusedError",
           ["network|resume|."]),
    raised("sigkill", "os.kill(os.getpid(), 9)", {"host_oom", "unknown", "node_failure"}, r"SIGKILL|signal 9|exitcode: -9", ["resume"]),
    raised("sigsegv", "os.kill(os.getpid(), 11)", {"code_error", "unknown", "node_failure"}, r"SIGSEGV|signal 11|exitcode: -11|egmentation", ["."]),
    raised("sigterm", "os.kill(os.getpid(), 15)", {"unknown", "preempted", "cancelled"}, r"SIGTERM|signal 15|exitcode: -15", ["resume"]),
    Mechanism("interrupt", truth({"cancelled"}, r"SIGINT", 20, [r"file c\.json: seconds"], ["resume|on request"]),
              config={**CONFIG, "seconds": 0.1}, during=signal.SIGINT),
    dataclasses.replace(
        raised("hang", "time.sleep(600)", {"hang"}, r"no (progress|step)|quiet|SIGKILL|stopped|stuck|hang", ["diagnose|stack|resume"]),
        run_file='[supervise]\nhang_after = "3s"\nstart_within = "60s"\ngrace = "1s"\n'),
    dataclasses.replace(
        at_start("hang_at_start", "import time\nprint('loading', flush=True); time.sleep(600)", {"hang"}, r"no|first step",
                 ["diagnose|stack|start|worker|."]),
        run_file='[supervise]\nstart_within = "3s"\ngrace = "1s"\n'),
    Mechanism("load_fails", truth({"checkpoint_error", "code_error"}, r"size mismatch|RuntimeError", None, SCRIPT, ["."]),
              step=f"raise RuntimeError('{MISMATCH}')"),
    at_start("torn_checkpoint", "import pickle; open('w.pkl', 'wb').write(b'\\x80\\x04\\x95\\x10'); pickle.load(open('w.pkl', 'rb'))",
             {"checkpoint_error", "code_error", "data_error"}, r"EOFError|UnpicklingError|pickle", ["."]),
    raised("own_exit", "sys.exit(3)", {"code_error", "unknown"}, r"exit|code 3", ["."]),
    Mechanism("time_limit", truth({"timeout", "budget_exhausted"}, r"timeout` of \d+ s", None, SCRIPT, ["."]),
              step="time.sleep(3 if step > 5 else 0)", run_file='[supervise]\ntimeout = "TIMEOUT s"\ngrace = "1s"\n'),
]
