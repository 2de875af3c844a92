"""The facts of a rehearsal: what its parts record, and what they know of the launch."""

from __future__ import annotations

import json
from typing import Any

from .._observing.batch_facts import finite
from .._observing.observed_run import ObservedRun


class RehearsalFacts:
    """Records the facts of a rehearsal (docs/formats/rehearsal.md)."""

    def __init__(self, run: ObservedRun):
        self.run = run
        # The first step of this launch, and how many the script means to make.
        self.first_step = 1
        self.total_steps: int | None = None
        # What is known of the repeated batches.
        self.batches: dict[str, Any] = {}
        self._said: dict[str, str] = {}

    def say(self, about: str, facts: Any) -> None:
        """Records facts about a topic, without non-finite values, which JSON cannot represent."""
        text = json.dumps(finite(facts), separators=(",", ":"), default=str)
        if self._said.get(about) == text:
            return
        self._said[about] = text
        self.run._event("rehearsal_facts", None, {"about": about, "facts": text})
