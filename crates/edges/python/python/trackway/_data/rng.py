"""The random state of the process: the global generators that libraries use by default."""

from __future__ import annotations

import os
from typing import Any

from .. import _events
from .._state import arrays as _arrays


class ProcessRng:
    """The global generators of Python, NumPy and PyTorch (CPU, CUDA, MPS), as far as these libraries are imported.

    An object with `state_dict()` and `load_state_dict()`, so that it can be a component of a checkpoint."""

    def state_dict(self) -> dict[str, Any]:
        import random

        state: dict[str, Any] = {"python": random.getstate()}
        if numpy := _arrays.loaded("numpy"):
            state["numpy"] = numpy.random.get_state(legacy=False)
        if torch := _arrays.loaded("torch"):
            state["torch"] = torch.get_rng_state()
            if torch.cuda.is_available() and torch.cuda.is_initialized():
                state["cuda"] = torch.cuda.get_rng_state_all()
            if torch.backends.mps.is_available():
                state["mps"] = torch.mps.get_rng_state()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores every generator that is in the state and exists in this process, importing libraries as needed."""
        import random

        random.setstate(state["python"])
        if "numpy" in state:
            import numpy

            numpy.random.set_state(state["numpy"])
        if "torch" in state:
            import torch

            torch.set_rng_state(state["torch"])
            if "cuda" in state and torch.cuda.is_available():
                for device, one in enumerate(state["cuda"][: torch.cuda.device_count()]):
                    torch.cuda.set_rng_state(one, device)
            if "mps" in state and torch.backends.mps.is_available():
                torch.mps.set_rng_state(state["mps"])


def seed(number: int | None = None) -> int:
    """Seeds the global generators of Python, and of NumPy and PyTorch (every device) if they are imported, with the
    given number, else with the `seed` of the run file (TRACKWAY_SEED), else with 0. Returns the seed.

    An unseeded generator starts differently in each process, even if nothing ever draws from it; then no two launches
    end in the same state, and `trackway prove` reports it."""
    import random

    if number is None:
        number = int(os.environ.get("TRACKWAY_SEED") or 0)
    random.seed(number)
    if numpy := _arrays.loaded("numpy"):
        numpy.random.seed(number % (1 << 32))
    if torch := _arrays.loaded("torch"):
        torch.manual_seed(number)
    _events.record("seed_taken", seed=number)
    return number
