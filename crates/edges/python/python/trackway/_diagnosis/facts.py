"""The facts of a diagnosis: what its parts record, and what they know of the training (docs/diagnosis.md)."""

from __future__ import annotations

import json
from typing import Any

from .._observing.batch_facts import finite, leaves, tensor_facts
from .._observing.observed_run import ObservedRun
from .._state import arrays as _arrays

# Characters of the facts of one topic; the least important parts of larger ones are left out.
FACTS_CHARACTERS_MAX = 16_384
# Tensors of a batch, or of the input of a layer or an operation, that are described.
TENSORS_MAX = 8


class DiagnosisFacts:
    """Records the facts of a diagnosis. `last_step` is the last step of the launch, if it has one."""

    def __init__(self, run: ObservedRun, last_step: int | None):
        self.run = run
        self.last_step = last_step
        # Whether everything was seen, so that the loop may end.
        self.enough = False
        # The step that is being made, and its batch; the step is None before the first one.
        self.step: int | None = None
        self.batch: Any = None
        self.batch_number: int | None = None
        # Seconds that the loop waited for each batch since the last look.
        self.waited: list[float] = []
        self._blind: set[str] = set()

    @property
    def rank(self) -> int:
        return self.run._rank

    def say(self, about: str, facts: dict[str, Any]) -> None:
        """Records facts about a topic, without non-finite values, which JSON cannot represent."""
        facts = finite(facts)
        text = json.dumps(facts, separators=(",", ":"), default=str)
        for part in ("batch_tensors", "outputs", "inputs", "top"):
            if len(text) > FACTS_CHARACTERS_MAX and part in facts:
                facts = {name: value for name, value in facts.items() if name != part}
                text = json.dumps(facts, separators=(",", ":"), default=str)
        if len(text) <= FACTS_CHARACTERS_MAX:
            self.run._event("diagnosis_facts", self.step, {"about": about, "facts": text})

    def blind(self, where: str, error: BaseException | str) -> None:
        """Records once what could not be observed."""
        if where not in self._blind:
            self._blind.add(where)
            why = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
            self.run._event("diagnosis_blind", self.step, {"where": where, "why": why})

    def place(self) -> dict[str, Any]:
        """Where the training is, as facts."""
        return {"rank": self.rank, "step": self.step, "batch": self.batch_number, "epoch": self.run.epoch}

    def batch_tensors(self) -> list[dict[str, Any]]:
        """The tensors of the batch in numbers."""
        tensors = [(name, value) for name, value in leaves(self.batch) if _arrays.is_tensor(value)]
        return [tensor_facts(name, value) for name, value in tensors[:TENSORS_MAX]]
