"""NumPy, PyTorch and JAX tensors as bytes. A framework is imported only when one of its tensors appears."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from math import prod
from typing import Any, NamedTuple

from ..errors import InputError

# Names of dtypes, the same in the three frameworks, and what safetensors calls them. A dtype that is not listed is
# stored as its bytes (U8), with its name beside it.
SAFETENSORS_DTYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
    "uint64": "U64", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "complex64": "C64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
}  # fmt: skip
DTYPE_NAMES = {stored: name for name, stored in SAFETENSORS_DTYPES.items()}

# Dtypes stored as bytes: name and bytes of an element.
RAW_DTYPES = {
    "complex128": 16, "float4_e2m1fn_x2": 1, "int4": 1, "uint4": 1, "int2": 1, "uint2": 1, "float4_e2m1fn": 1,
    "float6_e2m3fn": 1, "float6_e3m2fn": 1, "float8_e3m4": 1, "float8_e4m3": 1, "float8_e4m3b11fnuz": 1,
}  # fmt: skip

ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "U32": 4, "I32": 4, "U64": 8, "I64": 8, "F16": 2, "BF16": 2,
    "F32": 4, "F64": 8, "C64": 8, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1,
}  # fmt: skip


# No dataclasses on the way of `trackway.attach()`: their module takes as long to import as all of this package.
class Leaf:
    """A tensor to be written to a file."""

    def __init__(
        self,
        framework: str,
        dtype: str,
        shape: tuple[int, ...],
        len_bytes: int,
        address: int,
        fill: Callable[[Any], None] | None,
        keep: Any,
        identity: tuple[Any, ...] | None = None,
        note: dict[str, Any] | None = None,
    ):
        self.framework, self.dtype, self.shape, self.len_bytes = framework, dtype, shape, len_bytes
        # Where the bytes are, when they can be copied as they are; else `fill` writes them into a buffer, for `write`.
        self.address, self.fill = address, fill
        # What keeps the bytes where they are.
        self.keep = keep
        # The same for tensors in one and the same memory; None if unknown.
        self.identity = identity
        # Tensors of different groups are never in one file.
        self.group = 0
        # What else is needed to make the tensor again.
        self.note = note or {}


class Stored(NamedTuple):
    """A tensor in the bytes of a file; `dtype` is the framework's name for it."""

    buffer: Any
    begin: int
    dtype: str
    shape: tuple[int, ...]
    note: dict[str, Any]


def loaded(framework: str) -> Any:
    """The module of a framework if the process has imported it, else None."""
    return sys.modules.get(framework)


def is_torch(value: object) -> bool:
    torch = loaded("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_numpy(value: object) -> bool:
    numpy = loaded("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_jax(value: object) -> bool:
    jax = loaded("jax")
    return jax is not None and isinstance(value, jax.Array)


def is_tensor(value: object) -> bool:
    return is_torch(value) or is_numpy(value) or is_jax(value)


def leaf(value: Any) -> Leaf:
    """A framework tensor as a leaf.

    Raises InputError if it cannot be stored; the message begins with the kind of tensor."""
    if is_torch(value):
        return _torch_leaf(value)
    if is_jax(value):
        return _jax_leaf(value)
    return _numpy_leaf(value)


def is_on_gpu(leaf: Leaf) -> bool:
    """Whether the bytes come from a CUDA device."""
    return leaf.framework == "torch" and bool(leaf.keep.is_cuda)


def write(leaves: Iterable[Leaf], buffers: Iterable[Any]) -> None:
    """Copies tensors that have no address into buffers. Those of a GPU are copied one after the other without a wait, in the
    current stream of their device, and waited for together: when this returns, or raises, nothing is still being copied."""
    devices = set()
    try:
        for leaf, buffer in zip(leaves, buffers, strict=True):
            assert leaf.fill is not None, "a tensor without an address can be written to a buffer"
            if is_on_gpu(leaf):
                devices.add(leaf.keep.device)
            leaf.fill(buffer)
    finally:
        for device in devices:
            loaded("torch").cuda.current_stream(device).synchronize()


def _stored_as(dtype: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...], dict[str, Any]]:
    """The dtype and shape stored in safetensors, and a note if they differ from the tensor's own."""
    if stored := SAFETENSORS_DTYPES.get(dtype):
        return stored, shape, {}
    if item_bytes := RAW_DTYPES.get(dtype):
        return "U8", (*shape, item_bytes), {"dtype": dtype}
    raise InputError(f"a tensor of dtype {dtype}, which a checkpoint cannot store; convert it first")


def _torch_leaf(tensor: Any) -> Leaf:
    import torch

    if hasattr(tensor, "to_local"):
        raise InputError("a DTensor, distributed over ranks; wrap the component in `trackway.Sharded`, or use `trackway.dcp`")
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
        what = "meta" if tensor.is_meta else "quantized" if tensor.is_quantized else str(tensor.layout)
        raise InputError(f"a {what} tensor; convert it to a dense tensor first")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    dtype, shape, note = _stored_as(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
    len_bytes = tensor.numel() * tensor.element_size()
    direct = tensor.device.type == "cpu" and tensor.is_contiguous()

    def fill(buffer: Any) -> None:
        torch.frombuffer(buffer, dtype=tensor.dtype).view(tensor.shape).copy_(tensor, non_blocking=tensor.is_cuda)

    identity = None
    if len_bytes > 0:
        identity = (str(tensor.device), tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
    return Leaf(
        framework="torch", dtype=dtype, shape=shape, len_bytes=len_bytes, note=note, keep=tensor, identity=identity,
        address=tensor.data_ptr() if direct else 0, fill=None if direct else fill,
    )  # fmt: skip


def _numpy_leaf(array: Any) -> Leaf:
    import numpy

    if array.dtype.hasobject or array.dtype.names is not None or array.dtype.kind in "USMmV" and _is_plain(array):
        raise InputError(f"a NumPy array of dtype {array.dtype}, which has no plain numbers; convert it first")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    dtype, shape, note = _stored_as(array.dtype.name, array.shape)
    direct = array.flags.c_contiguous
    start = array.__array_interface__["data"][0]

    def fill(buffer: Any) -> None:
        numpy.copyto(numpy.frombuffer(buffer, dtype=array.dtype).reshape(array.shape), array)

    identity = (start, array.shape, array.strides, array.dtype.name) if array.nbytes else None
    return Leaf(
        framework="numpy", dtype=dtype, shape=shape, len_bytes=array.nbytes, note=note, keep=array, identity=identity,
        address=start if direct else 0, fill=None if direct else fill,
    )  # fmt: skip


def _is_plain(array: Any) -> bool:
    """Whether the dtype is built into NumPy; the extra dtypes of ml_dtypes have the same letter V."""
    return bool(array.dtype.type.__module__ == "numpy")


def _jax_leaf(array: Any) -> Leaf:
    import jax
    import numpy

    if not array.is_fully_addressable:
        raise InputError("a JAX array that is distributed over processes; save the shards of this process")
    note: dict[str, Any] = {}
    if jax.numpy.issubdtype(array.dtype, jax.dtypes.prng_key):
        note["prng"] = str(jax.random.key_impl(array))
        array = jax.random.key_data(array)
    elif array.weak_type and array.ndim == 0:
        note["weak"] = True
    made = _numpy_leaf(numpy.asarray(array))
    made.framework, made.identity = "jax", None
    made.note |= note
    return made


def build(framework: str, stored: Stored) -> Any:
    """The tensor, as a view of the bytes if the framework allows it.

    Raises InputError if the framework is not installed or does not support the dtype."""
    builders = {"torch": _build_torch, "numpy": _build_numpy, "jax": _build_jax}
    try:
        return builders[framework](stored)
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is needed for this checkpoint but not installed") from error


def _build_torch(stored: Stored) -> Any:
    import torch

    dtype = getattr(torch, stored.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise InputError(f"this PyTorch has no dtype {stored.dtype}")
    count = prod(stored.shape)
    if count == 0:
        return torch.empty(stored.shape, dtype=dtype)
    tensor = torch.frombuffer(stored.buffer, dtype=dtype, count=count, offset=stored.begin).view(stored.shape)
    return tensor.clone() if tensor.data_ptr() % tensor.element_size() else tensor


def _build_numpy(stored: Stored) -> Any:
    import numpy

    dtype = _numpy_dtype(stored.dtype)
    count = prod(stored.shape)
    if count == 0:
        return numpy.empty(stored.shape, dtype=dtype)
    return numpy.frombuffer(stored.buffer, dtype=dtype, count=count, offset=stored.begin).reshape(stored.shape)


def _numpy_dtype(name: str) -> Any:
    import numpy

    try:
        return numpy.dtype(name)
    except TypeError:
        import ml_dtypes  # the dtypes that NumPy itself does not have

        try:
            return numpy.dtype(getattr(ml_dtypes, name))
        except AttributeError:
            raise InputError(f"NumPy has no dtype {name}; load the checkpoint with framework='torch'") from None


def _build_jax(stored: Stored) -> Any:
    import jax

    array = _build_numpy(stored)
    made = jax.numpy.asarray(array.item()) if stored.note.get("weak") else jax.numpy.asarray(array)
    if made.dtype != array.dtype:
        raise InputError(f"JAX converts {array.dtype} to {made.dtype}; set jax_enable_x64 as it was at the save")
    if implementation := stored.note.get("prng"):
        return jax.random.wrap_key_data(made, impl=implementation)
    return made


def copy_into(target: Any, value: Any) -> Any:
    """`value` in place of `target`: copied into its memory if possible, else a new tensor of the same framework on the
    same device.

    Raises InputError if shape or dtype differ."""
    found, expected = (str(value.dtype), tuple(value.shape)), (str(target.dtype), tuple(target.shape))
    if found[1] != expected[1] or found[0].removeprefix("torch.") != expected[0].removeprefix("torch."):
        raise InputError(f"is {found[0]} {found[1]} in the checkpoint and {expected[0]} {expected[1]} here")
    if is_torch(target):
        import torch

        with torch.no_grad():
            target.copy_(value if is_torch(value) else torch.from_numpy(value))
        return target
    if is_numpy(target) and target.flags.writeable:
        import numpy

        numpy.copyto(target, value)
        return target
    if is_jax(target):
        import jax

        return jax.device_put(value, target.sharding)
    return value
