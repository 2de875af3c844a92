"""What ranks stored as parts, put together for another number of ranks: DTensors from their pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from ..errors import InputError
from . import arrays as _arrays
from . import state as _state
from . import tree as _tree
from .pieces import Piece, is_distributed, place_of

# What a program can do where the parts of ranks cannot be joined.
ADVICE = "pass `Sharded` a function `rejoin` that combines them"


def has_pieces(value: Any) -> bool:
    """Whether a restored value contains pieces."""
    if isinstance(value, Piece):
        return True
    if isinstance(value, Mapping):
        return any(map(has_pieces, value.values()))
    return isinstance(value, (list, tuple)) and any(map(has_pieces, value))


def locals_of(value: Any) -> Any:
    """The value with the tensor of each piece in its place."""
    if isinstance(value, Piece):
        return value.value
    if isinstance(value, Mapping):
        return {key: locals_of(item) for key, item in value.items()}
    return [locals_of(item) for item in value] if type(value) is list else value


def joined(name: str, target: Any, parts: Sequence[Any]) -> Any:
    """What this rank needs for `target`, from the parts of the ranks that saved.

    DTensors are built from their pieces, in the layout that they have in `target`; what is not distributed there
    becomes whole. Everything else must be the same in all parts.

    Raises InputError, with the path, for parts that cannot be joined."""
    return _join(parts, _template(target), (name,))


def _template(target: Any) -> Any:
    """The tensors of a target, in the structure of its state."""
    if _state.is_optimizer(target):
        # A new optimizer has no state yet: its tensors are laid out as their parameters are.
        parameters = [parameter for group in target.param_groups for parameter in group["params"]]
        return {"state": {number: _Everywhere(parameter) for number, parameter in enumerate(parameters)}}
    if _state.is_module(target):
        return _state._module_state(target)
    return target.state_dict() if _tree.is_stateful(target) else target


class _Everywhere:
    """One tensor in place of all that are in a container."""

    def __init__(self, tensor: Any):
        self.tensor = tensor


def _inner(template: Any, key: Any) -> Any:
    if isinstance(template, _Everywhere):
        return template.tensor
    if isinstance(template, Mapping):
        return template.get(key)
    fits = isinstance(template, (list, tuple)) and isinstance(key, int) and key < len(template)
    return template[key] if fits else None


def _join(parts: Sequence[Any], template: Any, path: _tree.Path) -> Any:
    first = parts[0]
    if any(type(part) is not type(first) for part in parts):
        raise InputError(f"{_tree.place(path)} is of different types on the ranks that saved it; {ADVICE}")
    if isinstance(first, Piece):
        return _assembled(parts, template, path)
    if isinstance(first, Mapping):
        if any(part.keys() != first.keys() for part in parts):
            raise InputError(f"{_tree.place(path)} has different keys on the ranks that saved it; {ADVICE}")
        made = {key: _join([part[key] for part in parts], _inner(template, key), (*path, key)) for key in first}
        return made if type(first) is dict else _like(first, made)
    if type(first) in (list, tuple) and all(len(part) == len(first) for part in parts):
        items = (
            _join([part[index] for part in parts], _inner(template, index), (*path, index)) for index in range(len(first))
        )
        return type(first)(items)
    if not all(_equal(first, part) for part in parts[1:]):
        raise InputError(f"{_tree.place(path)} differs between the ranks that saved it, and is not a DTensor; {ADVICE}")
    return first


def _like(first: Mapping[Any, Any], made: dict[Any, Any]) -> Any:
    """A mapping of the same type, with what PyTorch hangs on the state of a module."""
    copy = type(first)(made)  # type: ignore[call-arg]
    if metadata := getattr(first, "_metadata", None):
        copy._metadata = metadata  # type: ignore[attr-defined]
    return copy


def _equal(one: Any, other: Any) -> bool:
    if _arrays.is_torch(one):
        # Bit for bit: a NaN equals itself.
        same = one.dtype == other.dtype and one.shape == other.shape
        return bool(same and _bytes(one).equal(_bytes(other)))
    if _arrays.is_tensor(one):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    return bool(one == other)


def _bytes(tensor: Any) -> Any:
    torch = _arrays.loaded("torch")
    return tensor.contiguous().view(-1).view(torch.uint8)


def _assembled(pieces: Sequence[Piece], template: Any, path: _tree.Path) -> Any:
    """The tensor as `template` has it: its piece of this rank if that is a DTensor, else the whole."""
    import torch

    size = pieces[0].size
    if not is_distributed(template):
        return _filled(pieces, size, (0,) * len(size), path)
    if tuple(template.shape) != size:
        raise InputError(
            f"{_tree.place(path)} has the size {size} in the checkpoint, and the tensor whose layout it takes has "
            f"{tuple(template.shape)}; {ADVICE}"
        )
    from torch.distributed.tensor import DTensor

    try:
        shape, offsets = place_of(template)
    except InputError as error:
        raise InputError(f"{_tree.place(path)} is here {error}") from None
    local = _filled(pieces, shape, offsets, path).to(template.to_local().device)
    return DTensor.from_local(
        local, template.device_mesh, template.placements, run_check=False, shape=torch.Size(size), stride=template.stride()
    )


def _filled(pieces: Sequence[Piece], shape: tuple[int, ...], offsets: tuple[int, ...], path: _tree.Path) -> Any:
    """The part of a tensor with that shape that begins at the offsets."""
    import torch

    distinct = {(piece.offsets, tuple(piece.value.shape)): piece for piece in pieces}
    made = torch.empty(shape, dtype=pieces[0].value.dtype)
    count = 0
    for piece in distinct.values():
        here, there = _overlap(shape, offsets, tuple(piece.value.shape), piece.offsets)
        made[here] = piece.value[there]
        count += made[here].numel()
    if count != prod(shape):
        raise InputError(
            f"{_tree.place(path)} has another layout than when it was saved, by the same number of ranks: pieces of other "
            "ranks are needed. Resume with the layout of the save, or use trackway.dcp, which loads any"
        )
    return made


def _overlap(
    shape: tuple[int, ...], offsets: tuple[int, ...], other_shape: tuple[int, ...], other_offsets: tuple[int, ...]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Where two boxes in one tensor overlap, in the coordinates of each."""
    here, there = [], []
    for length, offset, other_length, other_offset in zip(shape, offsets, other_shape, other_offsets, strict=True):
        begin = max(offset, other_offset)
        end = max(begin, min(offset + length, other_offset + other_length))
        here.append(slice(min(begin - offset, length), min(end - offset, length)))
        there.append(slice(min(begin - other_offset, other_length), min(end - other_offset, other_length)))
    return tuple(here), tuple(there)
