"""The components of a training state, and the files in which they are stored.

A state is a dict of *components*: a model, an optimizer, a dict of parameters, a generator. Component NAME is stored in
`NAME.json`, which holds its structure and everything that is not a tensor, and `NAME.safetensors` (or
`NAME-00001-of-0000N.safetensors` and so on if it is large), which holds its tensors under the framework's own names.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Collection, Iterable, Mapping
from math import prod
from typing import Any, NamedTuple, Protocol

from ..errors import InputError, IntegrityError
from . import arrays as _arrays
from . import tree as _tree

FORMAT = "trackway.state"
FORMAT_VERSION = 1

# What a component may be called: it becomes the beginning of file names.
NAME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,79}")

# Kinds whose tensors are few and small: they are written as JSON beside the rest.
INLINE_KINDS = {"rng", "data_cursor", "scheduler", "scaler"}

# A name that begins so gives the kind of a component, if its type does not.
KIND_OF_PREFIX = {
    "model": "weights", "params": "weights", "weights": "weights", "ema": "weights",
    "opt": "optimizer", "sched": "scheduler", "lr_sched": "scheduler", "scaler": "scaler", "rng": "rng",
    "loader": "data_cursor", "cursor": "data_cursor", "sampler": "data_cursor",
}  # fmt: skip

# For the size of a checkpoint: what a file takes beside its tensors, and a tensor beside its bytes.
FILE_BYTES = 64 << 10
HEADER_BYTES = 256

# The leaves of a state that is not a dict of components are together in one with this name.
REST = "state"


class Sink(Protocol):
    """Receives the files of a checkpoint: a draft of the compiled half."""

    def bytes(self, name: str, kind: str, content: bytes) -> None: ...

    def pin(self, size_bytes: int) -> bool: ...

    def tensors(
        self, stem: str, kind: str, metadata: dict[str, str], given: list[tuple[str, str, list[int], int, int, int]]
    ) -> list[Any]: ...

    def drop(self) -> None: ...


class Source(Protocol):
    """A verified checkpoint: its files, and the memory of each, which can be taken once."""

    @property
    def files(self) -> list[tuple[str, str]]: ...

    def take(self, name: str) -> Any: ...


# Frameworks' objects, known by their shape rather than by importing the framework


def _class_names(value: object) -> set[str]:
    return {f"{base.__module__}.{base.__qualname__}" for base in type(value).__mro__}


def is_module(value: object) -> bool:
    return "torch.nn.modules.module.Module" in _class_names(value)


def is_optimizer(value: object) -> bool:
    return "torch.optim.optimizer.Optimizer" in _class_names(value)


def unwrap(module: Any) -> Any:
    """The module inside DataParallel, DistributedDataParallel and `torch.compile`; it has the same parameters."""
    wrappers = {"DataParallel": "module", "DistributedDataParallel": "module", "OptimizedModule": "_orig_mod"}
    while attribute := wrappers.get(type(module).__name__):
        module = getattr(module, attribute)
    return module


def clean_name(name: str) -> str:
    """The name of a parameter without the prefixes that `torch.compile` adds."""
    return name.replace("_orig_mod.", "")


def kind_of(name: str, value: Any) -> str:
    """Weights, optimizer, scheduler, scaler, rng, data_cursor, or other: by type first, then by name."""
    if is_module(value):
        return "weights"
    if is_optimizer(value):
        return "optimizer"
    if _tree.is_generator(value):
        return "rng"
    classes = {qualified.rsplit(".", 1)[-1] for qualified in _class_names(value)}
    if {"LRScheduler", "_LRScheduler", "ReduceLROnPlateau"} & classes:
        return "scheduler"
    if "GradScaler" in classes:
        return "scaler"
    matching = [kind for prefix, kind in KIND_OF_PREFIX.items() if name.startswith(prefix)]
    return matching[0] if matching else "other"


def check_name(name: object) -> str:
    if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a part of a checkpoint: use a letter, then letters, digits or `_`, 80 at most"
        )
    return name


def split(state: Any) -> dict[str, Any]:
    """The components of a state. In a dict of containers and objects each is a component; what remains (plain values,
    tensors) goes together into `state`; anything else is one component."""
    if not (type(state) is dict and state and all(type(key) is str for key in state)):
        return {_single_name(state): state}
    parts, rest = {}, {}
    for name, value in state.items():
        if _is_part(value) and NAME_PATTERN.fullmatch(name):
            parts[name] = value
        else:
            rest[name] = value
    if not rest:
        return parts
    if REST in parts or not parts:
        return {REST: state}
    return {**parts, REST: rest}


def _single_name(state: Any) -> str:
    return "model" if is_module(state) else "optimizer" if is_optimizer(state) else REST


def _is_part(value: Any) -> bool:
    containers = isinstance(value, (Mapping, list, tuple)) or _tree.is_stateful(value) or _tree.is_generator(value)
    if containers or _arrays.is_tensor(value):
        return containers
    jax = _arrays.loaded("jax")
    return jax is not None and value is not None and not jax.tree_util.all_leaves([value])


def models_in(components: Mapping[str, Any]) -> list[Any]:
    """The modules among the components, without their wrappers."""
    return [unwrap(value) for value in components.values() if is_module(value)]


# Saving


def draft(
    sink: Sink, components: Mapping[str, Any], models: list[Any] | None = None, *, pieces: Collection[str] = ()
) -> None:
    """Passes every file of the components to `sink`; tensors are copied once. `models`: supply the names of an
    optimizer's parameters, if they are not among the components. `pieces`: the components of which this rank's pieces of
    DTensors are stored.

    Raises InputError, with the path, for a value that a checkpoint cannot store."""
    try:
        # Everything is looked at before anything is copied: a mistake must not cost a copy of the state.
        encoded = _encode_all(components, models, pieces)
        pin_for(sink, [leaf for component in encoded for leaf in component.encoder.leaves.values()], len(encoded))
        for name, kind, document, encoder in encoded:
            if encoder.leaves:
                _draft_tensors(sink, name, kind, encoder)
            sink.bytes(f"{name}.json", kind, _to_json(document))
    except BaseException:
        sink.drop()
        raise


def size_bytes(
    components: Mapping[str, Any], models: list[Any] | None = None, *, pieces: Collection[str] = ()
) -> int:
    """The approximate size of a checkpoint of the components; nothing is copied.

    Raises like `draft`, so that a state that cannot be stored is reported early."""
    encoded = _encode_all(components, models, pieces)
    leaves = [leaf for component in encoded for leaf in component.encoder.leaves.values()]
    return _size_bytes(leaves, len(encoded))


def pin_for(sink: Sink, leaves: list[_arrays.Leaf], files: int) -> None:
    """Pins the memory of files with these tensors, if some are on a GPU: before the first of them is added, so that it is
    pinned as a whole."""
    if any(map(_arrays.is_on_gpu, leaves)):
        sink.pin(_size_bytes(leaves, files))


def _size_bytes(leaves: list[_arrays.Leaf], files: int) -> int:
    return FILE_BYTES * (files + 1) + sum(leaf.len_bytes + HEADER_BYTES for leaf in leaves)


class _Encoded(NamedTuple):
    name: str
    kind: str
    document: dict[str, Any]
    encoder: _tree.Encoder


def _encode_all(components: Mapping[str, Any], models: list[Any] | None, pieces: Collection[str]) -> list[_Encoded]:
    models = models_in(components) if models is None else models
    return [_encode(check_name(name), value, models, name in pieces) for name, value in components.items()]


def _encode(name: str, value: Any, models: list[Any], pieces: bool) -> _Encoded:
    kind = kind_of(name, value)
    document: dict[str, Any] = {"format": FORMAT, "version": FORMAT_VERSION}
    encoder = _tree.Encoder(inline=kind in INLINE_KINDS, name_of=_joined, pieces=pieces)
    if is_module(value):
        tree = encoder.encode(_module_state(value), (name,))
        _group_frozen(unwrap(value), encoder)
    elif is_optimizer(value):
        names = _parameter_names(value, models)
        encoder = _tree.Encoder(name_of=lambda path: _joined(_with_parameter(path, names)), pieces=pieces)
        document["parameters"] = names
        tree = encoder.encode(value.state_dict(), (name,))
    elif _tree.is_stateful(value):
        tree = encoder.encode(value.state_dict(), (name,))
    else:
        tree = encoder.encode(value, (name,))
    if kind == "other" and encoder.leaves:
        # A part that holds tensors belongs to the state that a resume must bring back.
        kind = "weights"
    return _Encoded(name, kind, document | {"tree": tree}, encoder)


def _joined(path: _tree.Path) -> str:
    """The name of a tensor: its path below the component."""
    return ".".join(str(part) for part in path[1:])


def _module_state(module: Any) -> Any:
    state = unwrap(module).state_dict()
    cleaned = type(state)((clean_name(name), value) for name, value in state.items())
    if metadata := getattr(state, "_metadata", None):
        cleaned._metadata = {clean_name(name + ".").removesuffix("."): value for name, value in metadata.items()}
    return cleaned


def _group_frozen(module: Any, encoder: _tree.Encoder) -> None:
    """Puts frozen parameters into separate files: these do not change from save to save, and are not written again."""
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad and (leaf := encoder.leaves.get(clean_name(name))):
            leaf.group = 1


def _parameter_names(optimizer: Any, models: Iterable[Any]) -> list[str | None]:
    """The names of the parameters in the order in which the optimizer numbers them; None for unknown ones."""
    names = {id(parameter): clean_name(name) for model in models for name, parameter in model.named_parameters()}
    return [names.get(id(parameter)) for group in optimizer.param_groups for parameter in group["params"]]


def _with_parameter(path: _tree.Path, names: list[str | None]) -> _tree.Path:
    """`state.3.exp_avg` with the name of parameter 3."""
    if len(path) > 2 and path[1] == "state" and isinstance(path[2], int) and path[2] < len(names):
        return (*path[:2], names[path[2]] or path[2], *path[3:])
    return path


def _draft_tensors(sink: Sink, name: str, kind: str, encoder: _tree.Encoder) -> None:
    given = [
        (tensor, leaf.dtype, list(leaf.shape), leaf.group, leaf.len_bytes, leaf.address)
        for tensor, leaf in encoder.leaves.items()
    ]
    # As `safetensors.torch.save_model` does it: a tensor that is tied to another one is named here, and stored once.
    regions = sink.tensors(name, kind, encoder.aliases, given)
    _arrays.write([leaf for leaf in encoder.leaves.values() if leaf.address == 0 and leaf.len_bytes], regions)


def _to_json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


# Loading


class Stored:
    """The components of a verified checkpoint. Files are read when needed, each once."""

    def __init__(self, source: Source):
        self._source = source
        self._files = [name for name, _ in source.files]
        self._documents: dict[str, Any] = {}

    @property
    def names(self) -> list[str]:
        """The names of the components, sorted."""
        return [name.removesuffix(".json") for name in self._files if self._document(name) is not None]

    def restore(
        self, name: str, target: Any = None, *, framework: str | None = None, models: Iterable[Any] = ()
    ) -> Any:
        """A component: restored into `target` if that is an object or a container, else returned as a new value. The
        names of an optimizer's parameters are looked up in `models`.

        Raises InputError if the checkpoint has no such component, or it does not fit."""
        document = self._component(name)
        decoder = _tree.Decoder(self._finder(name), framework)
        tree = document["tree"]
        if is_module(target):
            _restore_module(target, decoder.decode(tree), name)
        elif is_optimizer(target):
            _restore_optimizer(target, decoder.decode(tree), name, document.get("parameters", []), models)
        elif _tree.is_stateful(target):
            _tree.load_state(target, decoder.decode(tree), (name,))
        else:
            return decoder.decode(tree, target, (name,))
        return target

    def part(self, name: str) -> Any:
        """A component as one rank stored it: a new value, with a Piece for each DTensor."""
        return _tree.Decoder(self._finder(name), pieces=True).decode(self._component(name)["tree"])

    def _component(self, name: str) -> dict[str, Any]:
        document = self._document(f"{name}.json") if f"{name}.json" in self._files else None
        if document is None:
            raise InputError(f"the checkpoint holds no `{name}`; it holds {_tree._list_names(self.names)}")
        return dict(document)

    def foreign(self, framework: str) -> dict[str, Any]:
        """The files of a checkpoint that was not written from Python: the tensors of each safetensors file, the values
        of each JSON file, the bytes of every other file."""
        return {name: self._foreign_file(name, framework) for name in self._files}

    def _foreign_file(self, name: str, framework: str) -> Any:
        region = self._source.take(name)
        if name.endswith(".safetensors"):
            return {tensor: _arrays.build(framework, stored) for tensor, stored in tensors_in(name, region).items()}
        content = bytes(memoryview(region))
        return json.loads(content) if name.endswith(".json") else content

    def _document(self, file: str) -> Any:
        if not file.endswith(".json"):
            return None
        if file not in self._documents:
            self._documents[file] = self._parse(file)
        return self._documents[file]

    def _parse(self, file: str) -> Any:
        try:
            document = json.loads(bytes(memoryview(self._source.take(file))))
        except (ValueError, RecursionError):
            return None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            return None
        if document.get("version") != FORMAT_VERSION:
            raise InputError(
                f"`{file}` has version {document.get('version')}, but this trackway reads {FORMAT_VERSION}"
            )
        return document

    def _finder(self, component: str) -> Any:
        """Finds the tensors of a component by name, in whichever of its files they are."""
        pattern = files_of(component)
        files = [name for name in self._files if pattern.fullmatch(name)]
        known: dict[str, _arrays.Stored] = {}

        def find(name: str) -> _arrays.Stored:
            while name not in known and files:
                file = files.pop(0)
                known.update(tensors_in(file, self._source.take(file)))
            if name not in known:
                raise InputError(f"`{component}.json` names the tensor `{name}`, but none of its files contains it")
            return known[name]

        return find


def files_of(component: str) -> re.Pattern[str]:
    """What the names of the files with the tensors of a component look like."""
    return re.compile(rf"{re.escape(component)}(-\d{{5,}}-of-\d{{5,}})?\.safetensors")


def tensors_in(file: str, region: Any) -> dict[str, _arrays.Stored]:
    """The tensors of a safetensors file, by name, as ranges of its bytes.

    Raises IntegrityError if it is not a valid safetensors file."""
    view = memoryview(region)
    try:
        (header_bytes,) = struct.unpack_from("<Q", view)
        if header_bytes > len(view) - 8:
            raise ValueError("its header is longer than the file")
        header = json.loads(bytes(view[8 : 8 + header_bytes]))
        data = 8 + header_bytes
        tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
        return {name: _place_in(region, data, len(view), entry) for name, entry in tensors.items()}
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise IntegrityError(f"`{file}` is not a valid safetensors file: {error}") from error


def _place_in(region: Any, data: int, end: int, entry: Any) -> _arrays.Stored:
    dtype, shape = entry["dtype"], tuple(entry["shape"])
    start, stop = entry["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*shape, start, stop)):
        raise ValueError(f"shape {shape} and bytes {start} to {stop} are not whole numbers")
    count = prod(shape)
    if not 0 <= start <= stop <= end - data or stop - start != count * _arrays.ITEM_BYTES[dtype]:
        raise ValueError(f"a tensor of shape {shape} and dtype {dtype} does not fill bytes {start} to {stop}")
    return _arrays.Stored(region, data + start, _arrays.DTYPE_NAMES[dtype], shape, {})


def _restore_module(module: Any, state: Any, name: str) -> None:
    module = unwrap(module)
    own = {clean_name(own): own for own in _unprefixed(module.state_dict())}
    stored = _unprefixed(state)
    renamed = type(state)((own.get(clean_name(key), key), value) for key, value in stored.items())
    if metadata := getattr(state, "_metadata", None):
        renamed._metadata = metadata
    _tree.load_state(module, renamed, (name,))


def _unprefixed(state: Any) -> Any:
    """Adapts a state whose names all begin with `module.`: it was taken from the wrapper of a data-parallel model."""
    if state and all(key.startswith("module.") for key in state):
        return type(state)((key.removeprefix("module."), value) for key, value in state.items())
    return state


def _restore_optimizer(
    optimizer: Any, state: Any, name: str, stored_names: list[str | None], models: Iterable[Any]
) -> None:
    own_names = _parameter_names(optimizer, models)
    named = None not in stored_names and None not in own_names
    if named and stored_names != own_names:
        # The optimizer numbers its parameters; the numbers are worth nothing when the model lists them differently.
        state = _renumbered(optimizer, state, name, stored_names, own_names)
    _tree.load_state(optimizer, state, (name,))


def _renumbered(
    optimizer: Any, state: Any, name: str, stored_names: list[str | None], own_names: list[str | None]
) -> Any:
    """The state with the parameters of each group in the order in which `optimizer` has them."""
    groups, remaining = [], iter(own_names)
    for stored, own in zip(state["param_groups"], optimizer.param_groups, strict=False):
        own_group = [next(remaining) for _ in own["params"]]
        numbers = {stored_names[number]: number for number in stored["params"]}
        if set(numbers) != set(own_group):
            differing = sorted(map(str, set(numbers) ^ set(own_group)))
            raise InputError(f"{name} has other parameters in the checkpoint than here: {_tree._list_names(differing)}")
        groups.append(stored | {"params": [numbers[parameter] for parameter in own_group]})
    return state | {"param_groups": groups + state["param_groups"][len(groups) :]}
