"""Nested Python values as JSON, exactly and without pickle.

JSON's own values represent themselves: null, true, 1, 0.5, "text", lists, and dicts with string keys. Everything else
is an object with a `$` that names its type; docs/python.md lists them. Tensors are references by name into safetensors
files, or inline bytes if `inline` is set. Nothing that is read names code to run.
"""

from __future__ import annotations

import base64
import collections
import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import InputError
from . import arrays as _arrays
from . import pieces as _pieces

TAG = "$"

# How deep values may be nested, on the way out and in.
MAX_DEPTH = 200

Path = tuple[Any, ...]
Json = Any


def place(path: Path) -> str:
    """A readable path: `optimizer.param_groups[0].lr`."""
    parts = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return parts.removeprefix(".") or "the state"


def is_stateful(value: object) -> bool:
    """Whether an object has `state_dict()` and `load_state_dict()`."""
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


def _is_python_generator(value: object) -> bool:
    random = _arrays.loaded("random")
    return random is not None and isinstance(value, random.Random)


def is_generator(value: object) -> bool:
    """Whether it is a random generator of Python, NumPy or PyTorch."""
    numpy, torch = _arrays.loaded("numpy"), _arrays.loaded("torch")
    return (
        _is_python_generator(value)
        or numpy is not None and isinstance(value, (numpy.random.Generator, numpy.random.RandomState))
        or torch is not None and isinstance(value, torch.Generator)
    )  # fmt: skip


class Encoder:
    """Converts values to JSON and collects the tensors on the way, each under its own name."""

    def __init__(
        self, *, inline: bool = False, name_of: Callable[[Path], str] | None = None, pieces: bool = False
    ):
        self.leaves: dict[str, _arrays.Leaf] = {}
        # Tensors that are the same memory as one that was met earlier: their name, and that one's.
        self.aliases: dict[str, str] = {}
        self._names: dict[tuple[Any, ...], str] = {}
        self._inline = inline
        # Whether this rank's piece of a DTensor is stored.
        self._pieces = pieces
        self._name_of = name_of or (lambda path: ".".join(map(str, path)))

    def encode(self, value: Any, path: Path = ()) -> Json:
        if len(path) > MAX_DEPTH:
            raise InputError(f"{place(path[:8])}… is nested deeper than {MAX_DEPTH} levels; does it contain itself?")
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {TAG: "float", "value": repr(value)}
        if kind is list:
            return self._items(value, path)
        if kind is dict:
            return self._dict(value, path)
        if _arrays.is_tensor(value):
            return self._tensor(value, path)
        if (special := self._special(value, path)) is not None:
            return special
        raise InputError(
            f"{place(path)} is {_article(kind)}, which a checkpoint cannot store: pass numbers, strings or tensors, "
            "or an object with state_dict() and load_state_dict()"
        )

    def _items(self, values: Iterable[Any], path: Path) -> list[Json]:
        return [self.encode(value, (*path, index)) for index, value in enumerate(values)]

    def _pairs(self, value: dict[Any, Any], path: Path) -> list[Json]:
        return [[self.encode(key, (*path, "key")), self.encode(item, (*path, key))] for key, item in value.items()]

    def _dict(self, value: dict[Any, Any], path: Path) -> Json:
        if all(type(key) is str for key in value) and TAG not in value:
            return {key: self.encode(item, (*path, key)) for key, item in value.items()}
        return {TAG: "dict", "items": self._pairs(value, path)}

    def _special(self, value: Any, path: Path) -> Json | None:
        """The encoding of a value that JSON cannot represent; None if its type is not supported."""
        kind = type(value)
        if kind in (bytes, bytearray):
            return {TAG: kind.__name__, "base64": base64.b64encode(value).decode()}
        if kind is complex:
            return {TAG: "complex", "value": [self.encode(value.real), self.encode(value.imag)]}
        if kind is tuple:
            return {TAG: "tuple", "items": self._items(value, path)}
        if kind in (set, frozenset):
            # A set has no order, and equal states must give equal files.
            return {TAG: kind.__name__, "items": sorted(self._items(value, path), key=json.dumps)}
        if kind is collections.OrderedDict:
            return self._ordered_dict(value, path)
        if kind is collections.Counter:
            return {TAG: "counter", "items": self._pairs(value, path)}
        if kind is collections.deque:
            return {TAG: "deque", "items": self._items(value, path), "maxlen": value.maxlen}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = {name: self.encode(item, (*path, name)) for name, item in zip(value._fields, value, strict=True)}
            return {TAG: "namedtuple", "name": kind.__name__, "fields": fields}
        if is_generator(value):
            return self._generator(value, path)
        if is_stateful(value):
            return {TAG: "stateful", "state": self.encode(value.state_dict(), path)}
        return self._of_framework(value, path)

    def _ordered_dict(self, value: collections.OrderedDict[Any, Any], path: Path) -> Json:
        node = {TAG: "ordered_dict", "items": self._pairs(value, path)}
        if metadata := getattr(value, "_metadata", None):  # what PyTorch hangs on the state of a module
            node["metadata"] = Encoder().encode(dict(metadata))
        return node

    def _generator(self, value: Any, path: Path) -> Json:
        inline = Encoder(inline=True)
        if _is_python_generator(value):
            return {TAG: "generator", "type": "random.Random", "state": inline.encode(value.getstate(), path)}
        if _arrays.loaded("torch") and isinstance(value, _arrays.loaded("torch").Generator):
            state = inline.encode(value.get_state(), path)
            return {TAG: "generator", "type": "torch.Generator", "device": str(value.device), "state": state}
        if hasattr(value, "bit_generator"):
            state = inline.encode(value.bit_generator.state, path)
            return {TAG: "generator", "type": "numpy.random.Generator", "state": state}
        state = inline.encode(value.get_state(legacy=False), path)
        return {TAG: "generator", "type": "numpy.random.RandomState", "state": state}

    def _of_framework(self, value: Any, path: Path) -> Json | None:
        numpy, torch, jax = map(_arrays.loaded, ("numpy", "torch", "jax"))
        if numpy is not None and isinstance(value, numpy.generic):
            if value.dtype.hasobject or value.dtype.names is not None:
                return None
            return {TAG: "numpy", **self._in_place(_arrays.leaf(numpy.asarray(value)))}
        if numpy is not None and isinstance(value, numpy.dtype):
            return {TAG: "numpy.dtype", "value": value.name}
        if torch is not None:
            if isinstance(value, torch.Size):
                return {TAG: "torch.Size", "items": list(value)}
            if isinstance(value, (torch.dtype, torch.device)):
                name = type(value).__name__
                return {TAG: f"torch.{name}", "value": str(value).removeprefix("torch.")}
        if jax is not None and not jax.tree_util.all_leaves([value]):
            return self._pytree(jax, value, path)
        return None

    def _pytree(self, jax: Any, value: Any, path: Path) -> Json:
        """Any other container registered with JAX, such as a Flax TrainState. Its static part (functions, names) stays
        with the program: loading needs an object of the same structure."""
        children = one_level(jax, value)[0]
        kind = type(value)
        items = [[key, self.encode(child, (*path, key))] for key, child in children]
        return {TAG: "pytree", "type": f"{kind.__module__}.{kind.__qualname__}", "children": items}

    def _tensor(self, value: Any, path: Path) -> Json:
        piece = None
        try:
            if self._pieces and _pieces.is_distributed(value):
                piece = {"size": list(value.shape), "offsets": list(_pieces.place_of(value)[1])}
                value = value.to_local()
            leaf = _arrays.leaf(value)
        except InputError as error:
            raise InputError(f"{place(path)} is {error}") from None
        if self._inline:
            return {TAG: "array", "framework": leaf.framework, **self._in_place(leaf)}
        name = self._name_for(leaf, path)
        node: dict[str, Json] = {TAG: "tensor", "name": name, "framework": leaf.framework}
        if leaf.note:
            node["note"] = leaf.note
        if piece is not None:
            node["piece"] = piece
        return node

    def _name_for(self, leaf: _arrays.Leaf, path: Path) -> str:
        """The name under which a tensor is stored; tied tensors have the same."""
        wanted = name = self._name_of(path) or "value"
        count = 1
        while name in self.leaves or name in self.aliases:
            count += 1
            name = f"{wanted}~{count}"
        if leaf.identity is not None and (known := self._names.get(leaf.identity)):
            self.aliases[name] = known
            return known
        if leaf.identity is not None:
            self._names[leaf.identity] = name
        self.leaves[name] = leaf
        return name

    @staticmethod
    def _in_place(leaf: _arrays.Leaf) -> dict[str, Json]:
        """A small tensor as a string."""
        content = bytearray(leaf.len_bytes)
        if leaf.fill is not None and leaf.len_bytes:
            _arrays.write([leaf], [content])
        elif leaf.len_bytes:
            content[:] = _bytes_at(leaf)
        text = base64.b64encode(content).decode()
        note = {"note": leaf.note} if leaf.note else {}
        return {"dtype": leaf.dtype, "shape": list(leaf.shape), "base64": text, **note}


def _bytes_at(leaf: _arrays.Leaf) -> bytes:
    import ctypes

    return ctypes.string_at(leaf.address, leaf.len_bytes)


def one_level(jax: Any, value: Any) -> tuple[list[tuple[str, Any]], Any]:
    """The children of a pytree node with their keys, and a function that rebuilds the node from them."""
    flat, structure = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda inner: inner is not value)
    return [(_key_text(path), child) for path, child in flat], structure


def _key_text(path: Any) -> str:
    key = path[0] if path else ""
    for attribute in ("name", "key", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


class Decoder:
    """Converts JSON back to values. `find` finds a tensor by name; `framework` overrides the one it was saved from.
    `pieces`: what was a DTensor becomes a Piece instead of the tensor that the rank had."""

    def __init__(
        self,
        find: Callable[[str], _arrays.Stored] | None = None,
        framework: str | None = None,
        *,
        pieces: bool = False,
    ):
        self._pieces = pieces
        self._find = find
        self._framework = framework
        self._built: dict[tuple[str, str], Any] = {}

    def decode(self, node: Json, template: Any = None, path: Path = ()) -> Any:
        """The value. A tensor, a container or an object with `load_state_dict` at the same place in `template` is
        filled and returned; otherwise a new value is created.

        Raises InputError if the template does not fit."""
        if len(path) > MAX_DEPTH:
            raise InputError(f"{place(path[:8])}… is nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, list):
            return self._list(node, template, path)
        if not isinstance(node, dict):
            return node
        if TAG not in node:
            return self._mapping(list(node.items()), template, path, dict)
        reader = getattr(self, "_read_" + re.sub(r"\W", "_", str(node[TAG])), None)
        if reader is None:
            raise InputError(f"{place(path)} is a `{node[TAG]}`, which this version of trackway does not support")
        return reader(node, template, path)

    # Containers

    def _list(self, nodes: list[Json], template: Any, path: Path) -> list[Any]:
        same = type(template) is list and len(template) == len(nodes)
        inner = template if same else [None] * len(nodes)
        values = [self.decode(node, inner[index], (*path, index)) for index, node in enumerate(nodes)]
        if type(template) is list:
            template[:] = values
            return template
        return values

    def _mapping(self, items: list[tuple[Any, Json]], template: Any, path: Path, kind: type[Any]) -> Any:
        into = template if isinstance(template, dict) else None
        if into and (missing := [key for key in into if key not in {key for key, _ in items}]):
            raise InputError(
                f"{place(path)} has {_list_names(missing)} here but not in the checkpoint, "
                f"which has {_list_names([key for key, _ in items])}"
            )
        values = [(key, self.decode(node, into.get(key) if into else None, (*path, key))) for key, node in items]
        if into is not None:
            into.update(values)
            return into
        return kind(values)

    def _read_dict(self, node: Json, template: Any, path: Path) -> Any:
        return self._mapping(self._decoded_keys(node, path), template, path, dict)

    def _read_ordered_dict(self, node: Json, template: Any, path: Path) -> Any:
        made = self._mapping(self._decoded_keys(node, path), template, path, collections.OrderedDict)
        if "metadata" in node and template is None:
            made._metadata = collections.OrderedDict(self.decode(node["metadata"]))
        return made

    def _read_counter(self, node: Json, template: Any, path: Path) -> Any:
        return collections.Counter(self._mapping(self._decoded_keys(node, path), None, path, dict))

    def _decoded_keys(self, node: Json, path: Path) -> list[tuple[Any, Json]]:
        return [(self.decode(key, None, (*path, "key")), item) for key, item in node["items"]]

    def _read_tuple(self, node: Json, template: Any, path: Path) -> tuple[Any, ...]:
        items = node["items"]
        inner = template if type(template) is tuple and len(template) == len(items) else [None] * len(items)
        return tuple(self.decode(item, inner[index], (*path, index)) for index, item in enumerate(items))

    def _read_namedtuple(self, node: Json, template: Any, path: Path) -> Any:
        fields = node["fields"]
        fits = isinstance(template, tuple) and getattr(template, "_fields", None) == tuple(fields)
        values = {
            name: self.decode(item, getattr(template, name) if fits else None, (*path, name))
            for name, item in fields.items()
        }
        kind = type(template) if fits else collections.namedtuple(node["name"], list(fields), rename=True)
        return kind(*values.values())

    def _read_pytree(self, node: Json, template: Any, path: Path) -> Any:
        jax, children = _arrays.loaded("jax"), node["children"]
        if template is None or jax is None:
            return {key: self.decode(item, None, (*path, key)) for key, item in children}
        found, structure = one_level(jax, template)
        if [key for key, _ in found] != [key for key, _ in children]:
            raise InputError(
                f"{place(path)} is a {node['type']} with {_list_names([key for key, _ in children])} in the "
                f"checkpoint and has {_list_names([key for key, _ in found])} here"
            )
        values = [
            self.decode(item, inner, (*path, key)) for (key, item), (_, inner) in zip(children, found, strict=True)
        ]
        return jax.tree_util.tree_unflatten(structure, values)

    def _read_set(self, node: Json, template: Any, path: Path) -> set[Any]:
        return set(self._list(node["items"], None, path))

    def _read_frozenset(self, node: Json, template: Any, path: Path) -> frozenset[Any]:
        return frozenset(self._list(node["items"], None, path))

    def _read_deque(self, node: Json, template: Any, path: Path) -> collections.deque[Any]:
        return collections.deque(self._list(node["items"], None, path), maxlen=node["maxlen"])

    # Objects

    def _read_stateful(self, node: Json, template: Any, path: Path) -> Any:
        state = self.decode(node["state"], None, path)
        if not is_stateful(template):
            return state
        load_state(template, state, path)
        return template

    def _read_generator(self, node: Json, template: Any, path: Path) -> Any:
        state = self.decode(node["state"], None, path)
        generator = template if is_generator(template) else _new_generator(node, state, path)
        try:
            _set_generator(generator, state)
        except (TypeError, ValueError, KeyError, RuntimeError) as error:
            raise InputError(f"{place(path)} cannot take the state of a {node['type']}: {error}") from error
        return generator

    # Plain values

    def _read_float(self, node: Json, template: Any, path: Path) -> float:
        return float(node["value"])

    def _read_complex(self, node: Json, template: Any, path: Path) -> complex:
        real, imaginary = (self.decode(part) for part in node["value"])
        return complex(real, imaginary)

    def _read_bytes(self, node: Json, template: Any, path: Path) -> bytes:
        return base64.b64decode(node["base64"])

    def _read_bytearray(self, node: Json, template: Any, path: Path) -> bytearray:
        return bytearray(base64.b64decode(node["base64"]))

    def _read_torch_Size(self, node: Json, template: Any, path: Path) -> Any:
        import torch

        return torch.Size(node["items"])

    def _read_torch_device(self, node: Json, template: Any, path: Path) -> Any:
        import torch

        return torch.device(node["value"])

    def _read_torch_dtype(self, node: Json, template: Any, path: Path) -> Any:
        import torch

        dtype = getattr(torch, node["value"], None)
        if not isinstance(dtype, torch.dtype):
            raise InputError(f"{place(path)} is a torch.dtype that this PyTorch does not have: {node['value']}")
        return dtype

    def _read_numpy_dtype(self, node: Json, template: Any, path: Path) -> Any:
        return _arrays._numpy_dtype(node["value"])

    def _read_numpy(self, node: Json, template: Any, path: Path) -> Any:
        return _arrays.build("numpy", _stored_in_place(node))[()]

    # Tensors

    def _read_array(self, node: Json, template: Any, path: Path) -> Any:
        return _arrays.build(self._framework or node["framework"], _stored_in_place(node))

    def _read_tensor(self, node: Json, template: Any, path: Path) -> Any:
        framework = self._framework or node["framework"]
        if self._pieces and "piece" in node:
            piece = node["piece"]
            return _pieces.Piece(self._tied(framework, node), tuple(piece["size"]), tuple(piece["offsets"]))
        try:
            if not _arrays.is_tensor(template):
                return self._tied(framework, node)
            if _arrays.is_jax(template):
                framework = "jax"
            elif not (_arrays.is_numpy(template) and framework == "numpy"):
                framework = "torch" if _arrays.is_torch(template) else framework
            return _arrays.copy_into(template, self._tied(framework, node))
        except InputError as error:
            raise InputError(f"{place(path)}: {error}") from error

    def _tied(self, framework: str, node: Json) -> Any:
        """Restores the sharing of tensors that shared memory when they were saved."""
        key = (framework, node["name"])
        if key not in self._built:
            if self._find is None:
                raise InputError(f"names the tensor `{node['name']}`, but no tensors are allowed here")
            stored = self._find(node["name"])
            self._built[key] = _arrays.build(framework, _with_note(stored, node.get("note", {})))
        return self._built[key]


def load_state(target: Any, state: Any, path: Path) -> None:
    """Calls `load_state_dict`, and names the path if that fails."""
    try:
        target.load_state_dict(state)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"{place(path)} ({type(target).__name__}) does not take the state in the checkpoint: {error}"
        ) from error


def _with_note(stored: _arrays.Stored, note: dict[str, Any]) -> _arrays.Stored:
    """The tensor as it was before it was stored as bytes."""
    if dtype := note.get("dtype"):
        return _arrays.Stored(stored.buffer, stored.begin, dtype, stored.shape[:-1], note)
    return _arrays.Stored(stored.buffer, stored.begin, stored.dtype, stored.shape, note)


def _stored_in_place(node: Json) -> _arrays.Stored:
    content = bytearray(base64.b64decode(node["base64"]))
    stored = _arrays.Stored(content, 0, _arrays.DTYPE_NAMES[node["dtype"]], tuple(node["shape"]), {})
    return _with_note(stored, node.get("note", {}))


def _new_generator(node: Json, state: Any, path: Path) -> Any:
    name = node["type"]
    if name == "random.Random":
        import random

        return random.Random()
    if name == "torch.Generator":
        import torch

        return torch.Generator(device=node["device"])
    import numpy

    if name == "numpy.random.RandomState":
        return numpy.random.RandomState()
    bit_generators = {"MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}
    if state["bit_generator"] not in bit_generators:
        raise InputError(f"{place(path)} is a NumPy generator over {state['bit_generator']}, which is unknown here")
    return numpy.random.Generator(getattr(numpy.random, state["bit_generator"])())


def _set_generator(generator: Any, state: Any) -> None:
    if _is_python_generator(generator):
        generator.setstate(state)
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


def _article(kind: type) -> str:
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _list_names(names: Iterable[Any]) -> str:
    names = [f"`{name}`" for name in names]
    shown = ", ".join(names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown or "nothing"
