"""What a rehearsal observes of PyTorch: loss functions, gradients, updates and modules, without changes to the
script.

Calls of loss functions and of `Tensor.backward` pass through a `TorchFunctionMode`; modules and optimizers are observed
with PyTorch's global hooks. Failures in here are recorded and never raised: a rehearsal must not change the script.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from torch.nn.modules import batchnorm, dropout
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .._data import loader as _loader
from .._data.rng import ProcessRng
from .._observing.batch_facts import leaves, number, tensor_facts
from .._observing.observing import Mode, guarded
from .._state import state as _state
from .facts import RehearsalFacts

# Names in one group of parameters at most.
NAMES_MAX = 16
# Elements of a parameter that the size of an update is measured on.
SAMPLE_ELEMENTS = 4096
# Labels and inputs that are kept to be compared; larger ones are not.
KEPT_ELEMENTS_MAX = 1 << 22
# Items that are loaded twice.
RELOADED_ITEMS_MAX = 32
# How far rows of probabilities may be from 1.
SUM_TOLERANCE = 1e-3

CLASS_LOSSES = {"cross_entropy", "nll_loss"}
DISTANCE_LOSSES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}
LOSSES: dict[Any, str] = {
    getattr(functional, name): name
    for name in (
        *sorted(CLASS_LOSSES), *sorted(DISTANCE_LOSSES), "binary_cross_entropy", "binary_cross_entropy_with_logits"
    )
}  # fmt: skip
NORMS = ("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm")


@dataclass
class Tracked:
    """A parameter and what happened to it so far."""

    name: str
    parameter: Any
    bits: int
    in_model: bool
    optimized: bool = False
    moved: bool = False
    had_gradient: bool = False
    nonzero: bool = False
    nonfinite: bool = False


class Watch:
    """Observes the training of one process. A context manager: the hooks are set inside it."""

    def __init__(self, rehearsal: RehearsalFacts, loader: Any, components: Mapping[str, Any]):
        self.rehearsal, self.loader = rehearsal, loader
        self.paused = False
        self._failed: set[str] = set()
        self._components = components
        self._models: list[Any] = []
        self._tracked: dict[int, Tracked] = {}
        self._optimizers: list[Any] = []
        self._removals: list[Callable[[], None]] = []
        self._depth = 0
        self._inputs: list[Any] = []
        self._input_facts: list[dict[str, Any]] | None = None
        self._evaluations = 0
        self._batch_index, self._batch = 0, None
        # The labels and model inputs of each repeated batch, as they were the first time.
        self._first: dict[int, tuple[Any, Any]] = {}
        self._label_place: str | None = None
        self._counts: Counter[float] = Counter()
        self._targets: list[Any] = []
        self._counted: set[int] = set()
        self._calls_in_step = 0
        self._loss: dict[str, Any] = {}
        self._loss_mean: float | None = None
        self._updates: dict[str, Any] = {"backward_count": 0, "optimizer_steps": 0, "stale_gradients": 0}
        self._model_facts: dict[str, Any] = {}
        self._settings: dict[str, Any] = {"grad_scaler": False, "scheduler": False}
        self._first_compile_seconds: float | None = None
        self._scale = 1.0
        self._backward_norms: dict[int, float] = {}
        self._zeroed: dict[int, bool] = {}
        self._samples: list[tuple[Any, Any]] = []
        self._resumed: dict[str, Any] = {"models": {}, "optimizers": {}}
        self._reloaded = False

    def __enter__(self) -> Watch:
        handles = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
            register_optimizer_step_pre_hook(self.before_update),
            register_optimizer_step_post_hook(self.after_update),
        ]
        self._removals = [handle.remove for handle in handles]
        self._replace(torch.amp.GradScaler, "scale", self._scaling)
        for module in (torch.nn.utils, torch.nn.utils.clip_grad):
            self._replace(module, "clip_grad_norm_", self._clipping)
        self._mode = Mode(self)
        self._mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)
        for remove in self._removals:
            remove()

    def _replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        setattr(owner, name, wrap(original))
        self._removals.append(lambda: setattr(owner, name, original))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Work done here does not count as part of the training."""
        paused, self.paused = self.paused, True
        try:
            with torch.no_grad():
                yield
        finally:
            self.paused = paused

    def fail(self, where: str, error: Exception) -> None:
        """Records once what could not be observed."""
        if where not in self._failed:
            self._failed.add(where)
            self.rehearsal.run._event("rehearsal_blind", None, {"where": where, "why": repr(error)})

    def call(self, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Calls a function of PyTorch, and looks at the arguments and the result of a loss function."""
        name = LOSSES.get(function)
        if name is None or not torch.is_grad_enabled():
            return function(*arguments, **named)
        self._before_loss(name, arguments, named)
        result = function(*arguments, **named)
        self._after_loss(result)
        return result

    def begin(self, index: int, batch: Any) -> None:
        """The loop is about to get this batch."""
        self._batch_index, self._batch, self._calls_in_step, self._inputs = index, batch, 0, []
        if self._label_place is not None and not self._reloaded:
            self._reloaded = True
            self._reload()

    # Modules

    def _enter_module(self, module: Any, arguments: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            self._called(module, arguments)

    def _leave_module(self, module: Any, arguments: Any, result: Any) -> None:
        self._depth -= 1

    def _called(self, module: Any, arguments: Any) -> None:
        grad_enabled = torch.is_grad_enabled()
        if not self.paused and next(module.parameters(), None) is not None:
            self._see_call(module, arguments, grad_enabled)

    @guarded
    def _see_call(self, module: Any, arguments: Any, grad_enabled: bool) -> None:
        if not grad_enabled:
            self._evaluations += not module.training
            return
        self._meet(module, type(module).__name__)
        tensors = [value for _, value in leaves(arguments) if isinstance(value, torch.Tensor)]
        if self._input_facts is None and tensors:
            named = [(name, value) for name, value in leaves(arguments) if isinstance(value, torch.Tensor)]
            self._input_facts = [tensor_facts(name, value) for name, value in named]
        if not self._inputs:
            self._inputs = [value.detach() for value in tensors if value.numel() <= KEPT_ELEMENTS_MAX]
            self._inputs = [value.clone() for value in self._inputs]
        self._see_precision(module)

    def _see_precision(self, module: Any) -> None:
        if "precision" in self._settings:
            return
        parameter = next(module.parameters())
        kind = parameter.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else parameter.dtype
        short = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
        self._settings["precision"] = short.get(dtype, str(dtype).removeprefix("torch."))
        self._settings["devices"] = 1 if kind != "cpu" else 0

    def _meet(self, module: Any, name: str) -> None:
        module = _state.unwrap(module)
        if any(module is known for known in self._models):
            return
        fresh = [(name, one) for name, one in module.named_parameters() if id(one) not in self._tracked]
        if not fresh and self._models:
            return
        prefix = f"{name}." if self._models else ""
        self._models.append(module)
        self._resumed["models"][f"{type(module).__name__} {len(self._models)}"] = _digest(module.state_dict())
        for inner, parameter in fresh:
            self._tracked[id(parameter)] = Tracked(prefix + _state.clean_name(inner), parameter, bits(parameter), True)
        # One that an optimizer had before its model was called.
        for known in (self._tracked[id(one)] for one in module.parameters()):
            known.in_model = True

    # Loss functions

    @guarded
    def _before_loss(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._calls_in_step += 1
        if self._calls_in_step > 1:
            return
        scores = arguments[0] if arguments else named["input"]
        labels = arguments[1] if len(arguments) > 1 else named["target"]
        loss = self._loss
        if not loss:
            loss |= self._describe(name, scores, labels, named)
        elif loss["name"] != name:
            return
        loss["given_probabilities"] &= _are_probabilities(name, scores)
        if name in CLASS_LOSSES and not labels.is_floating_point():
            inside = labels != named.get("ignore_index", -100)
            loss["out_of_range"] += int((inside & ((labels < 0) | (labels >= loss["classes"]))).sum())
        if loss["out_of_range"] or loss["wrong_dtype"]:
            self._tell_loss()  # the next thing that happens may be an error
        self._count(name, labels, named)
        self._compare(labels)

    def _describe(self, name: str, scores: Any, labels: Any, named: dict[str, Any]) -> dict[str, Any]:
        classes = None
        if name in CLASS_LOSSES:
            classes = scores.shape[1] if scores.dim() > 1 else scores.shape[0]
        terms = labels.numel()
        if name in CLASS_LOSSES and not labels.is_floating_point():
            terms = int((labels != named.get("ignore_index", -100)).sum())
        by_class = name in CLASS_LOSSES and labels.is_floating_point() and labels.shape == scores.shape
        wrong_dtype = {
            "cross_entropy": not by_class and labels.dtype not in (torch.int64, torch.uint8),
            "nll_loss": labels.dtype not in (torch.int64, torch.uint8),
        }.get(name, not labels.is_floating_point() or labels.dtype != scores.dtype and "binary" in name)
        smoothing = float(named.get("label_smoothing") or 0.0)
        sums_to_one = name != "nll_loss" or bool((scores.float().exp().sum(1) - 1).abs().max() < SUM_TOLERANCE)
        return {
            "name": name, "reduction": named.get("reduction", "mean"), "classes": classes, "terms": max(1, terms),
            "floor": _smoothed_floor(smoothing, classes or 0), "given_probabilities": True,
            "given_no_log_probabilities": not sums_to_one,
            "shapes_differ": name in DISTANCE_LOSSES and scores.shape != labels.shape,
            "shapes": [list(scores.shape), list(labels.shape)],
            "out_of_range": 0, "reordered": 0, "changed": 0, "differentiated_sum": False, "wrong_dtype": wrong_dtype,
            "labels_are_inputs": False,
        }  # fmt: skip

    def _count(self, name: str, labels: Any, named: dict[str, Any]) -> None:
        if self._batch_index in self._counted:
            return
        self._counted.add(self._batch_index)
        kept = labels.detach()
        kept = kept.flatten() if name in CLASS_LOSSES else kept.reshape(len(kept) if kept.dim() else 1, -1)
        if name in CLASS_LOSSES and not labels.is_floating_point():
            values, counts = kept[kept != named.get("ignore_index", -100)].unique(return_counts=True)
            self._counts.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        elif name not in CLASS_LOSSES and sum(one.numel() for one in self._targets) < KEPT_ELEMENTS_MAX:
            self._targets.append(kept.double().cpu())
        weight = named.get("weight")
        best = self._best_constant_loss(name, weight.tolist() if isinstance(weight, torch.Tensor) else None)
        self._loss["labels"] = {"dtype": str(labels.dtype).removeprefix("torch."), **self._spread(best)}
        if best is not None:
            self.rehearsal.run._rehearsal_baseline(best)

    def _spread(self, best: float | None) -> dict[str, Any]:
        if self._counts:
            count, seen = sum(self._counts.values()), list(self._counts)
            return {
                "count": count, "distinct": len(seen), "min": min(seen), "max": max(seen),
                "best_constant_loss": best,
            }  # fmt: skip
        if not self._targets:
            return {}
        values = torch.cat([one.flatten() for one in self._targets])
        return {
            "count": len(values), "distinct": len(values.unique()), "min": float(values.min()),
            "max": float(values.max()), "best_constant_loss": best,
        }  # fmt: skip

    def _best_constant_loss(self, name: str, weight: list[float] | None) -> float | None:
        if name in CLASS_LOSSES:
            shares = [count * (weight[int(label)] if weight else 1.0) for label, count in self._counts.items()]
            total = sum(shares)
            return -sum(one / total * math.log(one / total) for one in shares if one > 0) if total > 0 else None
        if not self._targets or len({one.shape[1:] for one in self._targets}) != 1:
            return None
        targets = torch.cat(self._targets)
        if name == "mse_loss":
            return float(targets.var(0, unbiased=False).mean())
        if "binary" in name:
            share = targets.mean(0).clamp(1e-12, 1 - 1e-12)
            return float(-(share * share.log() + (1 - share) * (1 - share).log()).mean())
        if name == "l1_loss":
            return float((targets - targets.median(0).values).abs().mean())
        return None

    def _compare(self, labels: Any) -> None:
        """Whether labels come in the order of the batch, and in the same order each time. Reported only if the inputs
        of the model came in the same order: a loop may legitimately reshuffle a whole batch."""
        if labels.numel() > KEPT_ELEMENTS_MAX or not self._inputs:
            return
        flat, entered = labels.detach().flatten(), self._inputs[0]
        if self._batch_index not in self._first:
            self._first[self._batch_index] = (flat.clone(), entered)
            self._compare_with_batch(labels, flat, entered)
            return
        first, entered_first = self._first[self._batch_index]
        if not _same(entered, entered_first) or _same(flat, first):
            return
        self._loss["reordered" if _same(_sorted(flat), _sorted(first)) else "changed"] += 1

    def _compare_with_batch(self, labels: Any, flat: Any, entered: Any) -> None:
        if not labels.is_floating_point() and any(_same(flat, one.flatten()) for one in self._inputs):
            self._loss["labels_are_inputs"] = True
        found = [(name, one) for name, one in leaves(self._batch) if isinstance(one, torch.Tensor)]
        entered_as_is = any(_same(one.to(entered.device), entered) for _, one in found)
        for name, one in found:
            one = one.to(flat.device)
            if _same(one.flatten(), flat) and not any(_same(one, other) for other in self._inputs):
                self._label_place = name
            elif entered_as_is and labels.dim() == 1 == one.dim() and _same(_sorted(one), _sorted(flat)):
                self._loss["reordered"] += not _same(one, flat)
                self._label_place = name

    @guarded
    def _after_loss(self, result: Any) -> None:
        if self._calls_in_step != 1 or not self._loss:
            return
        terms = self._loss["terms"]
        mean = number(result.float().mean() if result.dim() else result)
        if mean is not None and self._loss["reduction"] == "sum":
            mean /= terms
        self._loss_mean = mean
        self._loss.setdefault("first_value", mean)

    # Gradients and updates

    @guarded
    def before_backward(self, loss: Any) -> None:
        updates = self._updates
        updates["backward_count"] += 1
        updates["loss_without_graph"] = not loss.requires_grad
        value = number(loss.detach().float().mean() / self._scale)
        run = self.rehearsal.run
        if value is None:
            value = float(loss.detach().float().mean())
        run._log(run._next_step - 1, {"trackway/rehearsal/loss": value}, {})
        if self._loss and self._loss_mean and self._loss["terms"] > 1 and updates["backward_count"] == 1:
            expected = self._loss_mean * self._loss["terms"]
            self._loss["differentiated_sum"] = abs(value - expected) <= 1e-3 * abs(expected)
        for optimizer in self._optimizers:
            if not self._zeroed[id(optimizer)]:
                self._zeroed[id(optimizer)] = _gradients_are_zero(optimizer)
        if updates["backward_count"] == 1:
            self._see_modules()

    def _see_modules(self) -> None:
        modules = [one for model in self._models for one in model.modules()]
        switching = [one for one in modules if isinstance(one, (dropout._DropoutNd, batchnorm._BatchNorm))]
        leaf = next((one for one in modules if next(one.children(), None) is None), None)
        shares = [one.p for one in modules if isinstance(one, dropout._DropoutNd)]
        self._model_facts = {
            "dropout": float(max(shares, default=0.0)),
            "switching_modules": len(switching),
            "switched_off": sum(not one.training for one in switching),
            "in_evaluation_mode": bool(self._models) and not any(one.training for one in self._models),
            "normalises_first": any(word in type(leaf).__name__ for word in NORMS),
        }

    @guarded
    def after_backward(self) -> None:
        if self._updates["optimizer_steps"] >= 5:
            return
        for key, tracked in self._tracked.items():
            gradient = tracked.parameter.grad
            if gradient is not None:
                self._backward_norms[key] = float(_dense(gradient).float().norm()) / self._scale

    @guarded
    def before_update(self, optimizer: Any, arguments: Any, named: Any) -> None:
        self._know(optimizer)
        updates, step = self._updates, self._updates["optimizer_steps"] + 1
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        if step > 1 and self._zeroed[id(optimizer)] is False:
            updates["stale_gradients"] += 1
        rates = [number(group["lr"]) for group in optimizer.param_groups if "lr" in group]
        if rates:
            rate = max(one or 0.0 for one in rates)
            updates.setdefault("first_learning_rate", rate)
            updates["learning_rate"] = max(rate, updates.get("learning_rate", 0.0))
        self._settings["scheduler"] |= hasattr(optimizer.step, "_wrapped_by_lr_sched")
        if not _is_checked(step):
            return
        self._see_gradients()
        if not updates.get("gradient_norm"):
            norms = [self._backward_norms.get(id(one), 0.0) for one in parameters]
            updates["gradient_norm"] = math.hypot(*norms)
            now = [float(_dense(one.grad).float().norm()) for one in parameters if one.grad is not None]
            updates["norm_at_update"] = math.hypot(*now)
        self._samples = [(one, _sample(one)) for one in parameters]

    def _see_gradients(self) -> None:
        for tracked in self._tracked.values():
            gradient = tracked.parameter.grad
            if gradient is None:
                continue
            tracked.had_gradient = True
            gradient = _dense(gradient)
            finite = bool(gradient.isfinite().all())
            tracked.nonfinite |= not finite
            tracked.nonzero = tracked.nonzero or bool(gradient.any())

    def _know(self, optimizer: Any) -> None:
        if any(optimizer is known for known in self._optimizers):
            return
        self._optimizers.append(optimizer)
        name = f"{type(optimizer).__name__} {len(self._optimizers)}"
        self._resumed["optimizers"][name] = _digest(optimizer.state_dict()["state"])
        for place, group in enumerate(optimizer.param_groups):
            for index, one in enumerate(group["params"]):
                unknown = Tracked(f"{name}[{place}][{index}]", one, bits(one), False)
                self._tracked.setdefault(id(one), unknown).optimized = True

    @guarded
    def after_update(self, optimizer: Any, arguments: Any, named: Any) -> None:
        updates = self._updates
        updates["optimizer_steps"] += 1
        self._zeroed[id(optimizer)] = False
        if updates["optimizer_steps"] == 1:
            self._first_compile_seconds = _compile_seconds()
        if not _is_checked(updates["optimizer_steps"]):
            return
        changes = [(float((_sample(one) - was).norm()), float(was.norm())) for one, was in self._samples]
        self._samples = []
        size = math.hypot(*(was for _, was in changes))
        if size > 0:
            ratio = math.hypot(*(change for change, _ in changes)) / size
            updates["update_ratio"] = max(ratio, updates.get("update_ratio", 0.0))
        self._see_moves()

    def _see_moves(self) -> None:
        for tracked in self._tracked.values():
            tracked.moved = tracked.moved or bits(tracked.parameter) != tracked.bits

    def _scaling(self, original: Any) -> Any:
        watch = self

        def scale(scaler: Any, *arguments: Any, **named: Any) -> Any:
            result = original(scaler, *arguments, **named)
            if scaler.is_enabled():
                watch._scale, watch._settings["grad_scaler"] = float(scaler.get_scale()), True
            return result

        return scale

    def _clipping(self, original: Any) -> Any:
        def clip_grad_norm_(parameters: Any, max_norm: Any, *arguments: Any, **named: Any) -> Any:
            self._settings["clip_norm"] = number(max_norm)
            return original(parameters, max_norm, *arguments, **named)

        return clip_grad_norm_

    # The same items twice

    @guarded
    def _reload(self) -> None:
        """Loads some items twice, without changing the state of the process's generators."""
        collate, data = getattr(self.loader, "collate_fn", None), getattr(self.loader, "dataset", None)
        place = self._label_place
        if collate is None or data is None or place is None:
            return
        if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
            return
        indexes = range(min(len(data), self.loader.batch_size or 1, RELOADED_ITEMS_MAX))
        generators = ProcessRng().state_dict()
        own = _loader._generators(_loader._own_generators(self.loader))
        try:
            items = [data[index] for index in indexes]
            once, again = dict(leaves(collate(items))), dict(leaves(collate([data[index] for index in indexes])))
        finally:
            _loader._set_generators(_loader._own_generators(self.loader), own)
            ProcessRng().load_state_dict(generators)
        self.rehearsal.batches["reload"] = _compared(once, again, place, items)

    # Reported facts

    def state(self) -> dict[str, Any]:
        """Digests of the trained state so far."""
        models = {f"{type(one).__name__} {n}": _digest(one.state_dict()) for n, one in enumerate(self._models, 1)}
        optimizers = {
            f"{type(one).__name__} {n}": _digest(one.state_dict()["state"]) for n, one in enumerate(self._optimizers, 1)
        }
        return {"models": models, "optimizers": optimizers}

    def tell(self) -> None:
        """Records everything observed so far."""
        self._tell_all()

    @guarded
    def _tell_all(self) -> None:
        say = self.rehearsal.say
        self._see_moves()
        say("batches", self.rehearsal.batches)
        say("inputs", self._input_facts or [])
        say("model", self._model())
        say("updates", self._all_updates())
        say("settings", {**self._settings, **self._compile(), "total_steps": self.rehearsal.total_steps})
        self._tell_loss()
        if self._evaluations:
            say("evaluation", {"calls": self._evaluations})
        if self.rehearsal.first_step > 1:
            began = {"step": self.rehearsal.first_step - 1, "components": sorted(self._components)}
            say("resumed", {**began, **self._resumed})

    def _compile(self) -> dict[str, Any]:
        """Whether `torch.compile` was used, and the seconds that it took up to the end of the first update and after it."""
        seconds, first = _compile_seconds(), self._first_compile_seconds
        if seconds == 0 or first is None:
            return {"compiled": seconds > 0}
        return {"compiled": True, "compile_seconds": first, "recompile_seconds": seconds - first}

    def _tell_loss(self) -> None:
        if self._loss:
            self.rehearsal.say("loss_function", self._loss)

    def _model(self) -> dict[str, Any]:
        ours = [one for one in self._tracked.values() if one.in_model]
        return {
            "classes": [type(one).__name__ for one in self._models],
            "parameters": _group(ours),
            "frozen": _group([one for one in ours if not one.parameter.requires_grad]),
            **self._model_facts,
        }

    def _all_updates(self) -> dict[str, Any]:
        ours = [one for one in self._tracked.values() if one.in_model and one.parameter.requires_grad]
        optimized = [one for one in self._tracked.values() if one.optimized]
        with_gradient = [one for one in self._tracked.values() if one.had_gradient]
        stepped = self._updates["optimizer_steps"] > 0
        return {
            **self._updates,
            "optimizers": [type(one).__name__ for one in self._optimizers],
            "optimized": _group(optimized),
            "foreign": _group([one for one in optimized if not one.in_model]),
            "not_in_optimizer": _group([one for one in ours if not one.optimized and stepped]),
            "without_gradient": _group([one for one in ours if not one.had_gradient and stepped]),
            "zero_gradient": _group([one for one in with_gradient if not one.nonzero]),
            "nonfinite_gradient": _group([one for one in with_gradient if one.nonfinite]),
            "unmoved": _group([one for one in ours if not one.moved]),
        }


def _group(tracked: list[Tracked]) -> dict[str, Any]:
    return {
        "tensors": len(tracked),
        "elements": sum(one.parameter.numel() for one in tracked),
        "names": [one.name for one in tracked[:NAMES_MAX]],
    }


def _compile_seconds() -> float:
    """The seconds that `torch.compile` has taken in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return float(sum(getattr(dynamo, "compilation_time_metrics", {}).get("_compile.compile_inner", ())))


def _is_checked(step: int) -> bool:
    """True for the first steps, then ever less often: inspecting all parameters costs as much as an update."""
    return step <= 5 or step & (step - 1) == 0


def _dense(gradient: Any) -> Any:
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def _gradients_are_zero(optimizer: Any) -> bool:
    parameters = (one for group in optimizer.param_groups for one in group["params"])
    return not any(one.grad is not None and bool(_dense(one.grad).any()) for one in parameters)


def _here(tensor: Any) -> Any:
    """The values; of a DTensor those of this rank, without waiting for others."""
    return tensor.detach().to_local() if hasattr(tensor, "to_local") else tensor.detach()


def _sample(parameter: Any) -> Any:
    flat = _here(parameter).reshape(-1)
    stride = max(1, -(-flat.numel() // SAMPLE_ELEMENTS))
    return flat[::stride].double()


def bits(tensor: Any) -> int:
    """The sum of the bits of all elements: it reveals a change at the cost of a sum."""
    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    flat = _here(tensor).reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    return int(flat.view(integers[flat.element_size()]).sum(dtype=torch.int64)) if flat.numel() else 0


def _digest(state: Any) -> str:
    hasher = hashlib.blake2b(digest_size=16)

    def add(name: str, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            hasher.update(f"{name} {tuple(value.shape)} {bits(value)};".encode())
        elif isinstance(value, Mapping):
            for key in sorted(value, key=str):
                add(f"{name}.{_state.clean_name(str(key))}", value[key])
        elif isinstance(value, (bool, int, float, str)):
            hasher.update(f"{name} {value!r};".encode())

    add("", state)
    return hasher.hexdigest()


def _same(one: Any, other: Any) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and bool(torch.equal(one, other))


def _sorted(flat: Any) -> Any:
    return flat.sort().values


def _are_probabilities(name: str, scores: Any) -> bool:
    """Whether values that should be unbounded logits are between 0 and 1 and sum to 1 over the classes."""
    if name not in ("cross_entropy", "binary_cross_entropy_with_logits") or scores.numel() < 2:
        return False
    scores = scores.detach().float()
    inside = bool(((scores >= 0) & (scores <= 1)).all())
    if name != "cross_entropy" or scores.dim() < 2 or not inside:
        return inside and name != "cross_entropy"
    return bool((scores.sum(1) - 1).abs().max() < SUM_TOLERANCE)


def _smoothed_floor(smoothing: float, classes: int) -> float:
    """The minimum cross-entropy with label smoothing: the entropy of a smoothed label."""
    if smoothing <= 0 or classes < 2:
        return 0.0
    other, right = smoothing / classes, 1 - smoothing + smoothing / classes
    return -right * math.log(right) - (classes - 1) * other * math.log(other)


def _compared(once: dict[str, Any], again: dict[str, Any], place: str, items: list[Any]) -> dict[str, int]:
    """Rows that differ between two loads, and rows whose inputs and labels the batch pairs differently than the data
    set."""
    labels, labels_again = once[place], again[place]
    rows = len(labels)
    others = [name for name, one in once.items() if name != place and isinstance(one, torch.Tensor)]
    others = [name for name in others if len(once[name]) == rows]

    def differ(row: int) -> bool:
        return any(not torch.equal(once[name][row], again[name][row]) for name in others)

    inputs = [differ(row) for row in range(rows)]
    changed = [not torch.equal(labels[row], labels_again[row]) for row in range(rows)]
    unpaired = 0
    for row, item in enumerate(items[:rows]):
        parts = dict(leaves(item))
        if place not in parts or not others or others[0] not in parts or inputs[row]:
            continue
        entered = torch.as_tensor(parts[others[0]])
        same_input = entered.shape == once[others[0]][row].shape and bool((entered == once[others[0]][row]).all())
        label = torch.as_tensor(parts[place])
        found = labels[row].reshape(-1)
        unpaired += same_input and label.numel() == found.numel() and bool((label.reshape(-1) != found).any())
    return {
        "checked": rows, "inputs_changed": sum(inputs), "labels_changed": sum(changed), "unpaired": int(unpaired),
    }  # fmt: skip
