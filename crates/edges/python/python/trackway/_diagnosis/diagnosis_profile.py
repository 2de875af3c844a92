"""What a diagnosis observes when steps are slow: a profile of a few steps.

With PyTorch `torch.profiler`, whose trace is kept as an artifact; without it py-spy, where it is installed and may
look at the process, or else samples of the main thread's stack taken in the process itself. The time that the loop
waits for its batches is measured in any case."""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import Any

from .._state import arrays as _arrays
from .facts import DiagnosisFacts

# First steps that are no measure of later ones, and steps that are profiled.
WARM_UP_STEPS, PROFILED_STEPS = 5, 10
# Seconds between two samples, and different places that are counted.
SAMPLE_SECONDS, PLACES_MAX = 0.01, 10_000
# Operations or lines in the facts.
TOP_MAX = 8
# Bytes of a trace that are kept.
TRACE_BYTES_MAX = 512 << 20
# What stacks of the sampling thread contain.
OWN_FILE = os.path.basename(__file__)
# Seconds that py-spy may take to write its result.
PY_SPY_SECONDS = 10.0


class Profile:
    """Profiles some steps of one process after a few that are not observed."""

    def __init__(self, diagnosis: DiagnosisFacts):
        self.diagnosis = diagnosis
        self._warm_up, self._profiled = WARM_UP_STEPS, PROFILED_STEPS
        self._begun = 0
        self._began = 0.0
        self._seconds: list[float] = []
        self._recorder: Any = None
        self._done = False

    def begin(self, step: int, observes: bool) -> None:
        """A step begins; the one before has ended."""
        now = time.perf_counter()
        last = self.diagnosis.last_step
        if self._begun == 0 and last is not None:
            # Of a short launch a third is not observed.
            steps = max(2, last - step + 1)
            self._warm_up = min(WARM_UP_STEPS, steps // 3)
            self._profiled = min(PROFILED_STEPS, steps - self._warm_up)
        if self._recorder is not None:
            self._seconds.append(now - self._began)
        if self._recorder is not None and len(self._seconds) >= self._profiled:
            self.conclude()
        elif self._recorder is None and not self._done and self._begun >= self._warm_up:
            self.diagnosis.waited.clear()
            self._recorder = _recorder()
            now = time.perf_counter()
        self._begun += 1
        self._began = now

    def conclude(self) -> None:
        """Records what was seen."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        self._done = True
        seconds, waited = self._seconds, self.diagnosis.waited[: len(self._seconds)]
        seen = recorder.stop(sum(seconds))
        trace = seen.pop("trace", None)
        if not seconds:
            self.diagnosis.blind("profile", "no step ended after the first ones")
            return
        loading = sum(waited) / sum(seconds) if waited and sum(seconds) > 0 else None
        facts = {
            "rank": self.diagnosis.rank,
            "steps": len(seconds),
            "step_seconds": statistics.median(seconds),
            "by": seen.get("by"),
            "parts": _parts(loading, seen.get("parts", {})),
            "top": [{"name": name, "fraction": fraction} for name, fraction in seen.get("top", [])[:TOP_MAX]],
            "why": seen.get("why"),
        }
        if trace is not None:
            facts |= self._keep(trace)
        self.diagnosis.say("throughput", facts)
        self.diagnosis.enough = True

    def _keep(self, path: str) -> dict[str, Any]:
        """Keeps a trace as an artifact, unless it is too large."""
        size = os.path.getsize(path)
        name = "diagnosis/" + os.path.basename(path)
        try:
            if size > TRACE_BYTES_MAX:
                return {"why": f"the trace has {size} bytes and was not kept: profile fewer steps"}
            self.diagnosis.run.artifact(path, name=name, step=self.diagnosis.step)
            return {"trace": name, "trace_bytes": size}
        finally:
            shutil.rmtree(os.path.dirname(path), ignore_errors=True)


def _parts(loading: float | None, parts: dict[str, float]) -> list[dict[str, Any]]:
    """The parts of a step as fractions, largest first. What is left of the time of the host is the forward pass and
    the rest of the loop."""
    found = {**({"data loading": loading} if loading is not None else {}), **parts}
    inside = ("data loading", "backward", "optimizer")
    if "backward" in found or "optimizer" in found:
        left = 1.0 - sum(found.get(name, 0.0) for name in inside)
        found["forward and the rest of the loop"] = max(0.0, left)
    elif loading is not None:
        found["the rest of the loop"] = max(0.0, 1.0 - loading)
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return [{"name": name, "fraction": fraction} for name, fraction in ordered]


def _recorder() -> Any:
    return TorchRecorder() if _arrays.loaded("torch") is not None else Samples()


class TorchRecorder:
    """`torch.profiler` over all activities that this machine supports."""

    def __init__(self) -> None:
        import torch
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        self._on_device = len(activities) > 1
        self._profile = profile(activities=activities)
        self._profile.start()

    def stop(self, seconds: float) -> dict[str, Any]:
        """The parts of the profiled steps, as fractions of these seconds, and the path of the trace."""
        self._profile.stop()
        events = self._profile.key_averages()
        total = max(seconds, 1e-9) * 1e6
        of = {
            "backward": lambda event: event.key.startswith("autograd::engine::evaluate_function"),
            "optimizer": lambda event: event.key.startswith("Optimizer.step#"),
        }
        parts = {
            name: min(1.0, sum(event.cpu_time_total for event in events if wanted(event)) / total)
            for name, wanted in of.items()
        }
        copies = [event for event in events if event.key == "aten::copy_" or event.key.startswith("Memcpy")]
        parts["copies"] = min(1.0, sum(max(event.self_cpu_time_total, _on_device(event)) for event in copies) / total)
        why = None
        if self._on_device:
            busy = sum(_on_device(event) for event in events)
            parts["device idle"] = max(0.0, 1.0 - busy / total)
        else:
            why = "no CUDA device, so kernels and idle time of a device"
        own = sorted(
            ((event.key, max(event.self_cpu_time_total, _on_device(event)) / total) for event in events), key=_last
        )
        top = [(name, fraction) for name, fraction in own if name.startswith("aten::") or "kernel" in name]
        path = os.path.join(tempfile.mkdtemp(prefix="trackway-profile-"), "trace.json.gz")
        self._profile.export_chrome_trace(path)
        return {"by": "torch.profiler", "parts": parts, "top": top, "trace": path, "why": why}


def _on_device(event: Any) -> float:
    """Microseconds on the device, by the name that this version of PyTorch has for them."""
    return float(getattr(event, "self_device_time_total", getattr(event, "self_cuda_time_total", 0.0)))


def _last(pair: tuple[str, float]) -> float:
    return -pair[1]


class Samples:
    """Stacks of the main thread, by py-spy where it can, and by a thread of this process."""

    def __init__(self) -> None:
        self._main = threading.main_thread().ident
        self._places: Counter[str] = Counter()
        self._ends = threading.Event()
        self._py_spy = PySpy()
        self._thread = threading.Thread(target=self._sample, name="trackway-samples", daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._ends.wait(SAMPLE_SECONDS):
            frame = sys._current_frames().get(self._main or 0)
            if frame is not None and len(self._places) < PLACES_MAX:
                code = frame.f_code
                self._places[f"{code.co_name} ({os.path.basename(code.co_filename)}:{frame.f_lineno})"] += 1

    def stop(self, seconds: float) -> dict[str, Any]:
        """The places that were seen most often, as fractions of all samples."""
        self._ends.set()
        self._thread.join()
        spied = self._py_spy.stop()
        places = spied if spied is not None else self._places
        count = max(1, sum(places.values()))
        top = [(name, seen / count) for name, seen in places.most_common(TOP_MAX)]
        found: dict[str, Any] = {"by": "py-spy" if spied is not None else "samples", "top": top}
        if spied is not None and self._py_spy.path is not None:
            found["trace"] = self._py_spy.path
        if spied is None:
            found["why"] = self._py_spy.why
        return found


class PySpy:
    """`py-spy record` of this process, where it is installed and the system permits it."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.why = "time outside Python, because py-spy is not installed"
        self._process: Any = None
        program = shutil.which("py-spy")
        if program is None:
            return
        self.path = os.path.join(tempfile.mkdtemp(prefix="trackway-profile-"), "py-spy.txt")
        _permit_tracing()
        command = [program, "record", "--pid", str(os.getpid()), "--format", "raw", "--rate", "100"]
        command += ["--duration", "3600", "--output", self.path]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
        except OSError as error:
            self.why = f"time outside Python, because py-spy could not be started: {error}"

    def stop(self) -> Counter[str] | None:
        """How often each innermost place was seen; None if py-spy could not look."""
        if self._process is None or self.path is None:
            return None
        self._process.send_signal(signal.SIGINT)
        try:
            _, said = self._process.communicate(timeout=PY_SPY_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, said = self._process.communicate()
        places: Counter[str] = Counter()
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    stack, _, count = line.rstrip().rpartition(" ")
                    if count.isdigit() and OWN_FILE not in stack:
                        places[stack.rsplit(";", 1)[-1]] += int(count)
        if places:
            return places
        last = next(iter(reversed(said.strip().splitlines())), "it wrote nothing")
        self.why = f"time outside Python, because py-spy could not look (it needs ptrace): {last[:200]}"
        shutil.rmtree(os.path.dirname(self.path), ignore_errors=True)
        return None


def _permit_tracing() -> None:
    """Lets a child process look at this one where only parents may (Yama's `ptrace_scope` 1)."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    pr_set_ptracer, any_process = 0x59616D61, ctypes.c_ulong(-1)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(pr_set_ptracer, any_process, 0, 0, 0)
