"""Callbacks that record a training under the metric names of Trackway's detectors, with at most three lines in a
script.

    watch = trackway.callbacks.TorchLoop(run, optimizer)      # a loop in PyTorch
    watch = trackway.callbacks.JaxLoop(run)                   # a loop in JAX, Flax, optax
    pytorch_lightning.Trainer(callbacks=[trackway.callbacks.LightningCallback()])
    transformers.Trainer(..., callbacks=[trackway.callbacks.TransformersCallback()])
    model.fit(..., callbacks=[trackway.callbacks.KerasCallback()])
    LogisticRegression().set_callbacks(trackway.callbacks.SklearnCallback())
    xgboost.train(..., callbacks=[trackway.callbacks.XGBoostCallback()])
    lightgbm.train(..., callbacks=[trackway.callbacks.LightGBMCallback()])

They never raise into the training and never wait for a device. A framework is imported only when its callback is
used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .jax import JaxLoop, gradient_metrics
    from .keras import KerasCallback
    from .lightgbm import LightGBMCallback
    from .lightning import LightningCallback
    from .sklearn import SklearnCallback
    from .torch import TorchLoop
    from .transformers import TransformersCallback
    from .xgboost import XGBoostCallback

_MODULES = {
    "JaxLoop": "jax",
    "KerasCallback": "keras",
    "LightGBMCallback": "lightgbm",
    "LightningCallback": "lightning",
    "SklearnCallback": "sklearn",
    "TorchLoop": "torch",
    "TransformersCallback": "transformers",
    "XGBoostCallback": "xgboost",
    "gradient_metrics": "jax",
}

__all__ = [
    "JaxLoop",
    "KerasCallback",
    "LightGBMCallback",
    "LightningCallback",
    "SklearnCallback",
    "TorchLoop",
    "TransformersCallback",
    "XGBoostCallback",
    "gradient_metrics",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
