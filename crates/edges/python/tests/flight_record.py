"""Reads flight records as docs/formats/flight-record.md has them, independently of the package under test."""

import struct
from dataclasses import dataclass, field
from pathlib import Path

MAGIC, MARK = b"\x89TWFR\r\n\x1a", b"\xf5TW\xfa"


@dataclass
class Record:
    """The contents of the whole frames of some segments, in the order of the files and of the frames."""

    points: list[tuple[str, int, float]] = field(default_factory=list)
    events: list[tuple[str, int | None, dict[str, str]]] = field(default_factory=list)
    params: list[tuple[str, str]] = field(default_factory=list)
    heartbeats: list[int] = field(default_factory=list)

    def metric(self, name):
        """The values of a metric by step; the last one where a step has several."""
        return {step: value for found, step, value in self.points if found == name}

    @property
    def names(self):
        return {name for name, _, _ in self.points}

    def kinds(self):
        return [kind for kind, _, _ in self.events]


def read(folder):
    record = Record()
    for path in sorted(Path(folder).glob("*.twfr")):
        _read_segment(path.read_bytes(), record)
    return record


def _read_segment(data, record):
    assert data[:8] == MAGIC
    names, at = {}, 8
    while at + 20 <= len(data):
        assert data[at : at + 4] == MARK, f"no frame at {at}"
        size, _, kind = struct.unpack_from("<IIB", data, at + 4)
        payload = data[at + 16 : at + 16 + size]
        at += 20 + size
        if at <= len(data):
            _take(kind, payload, names, record)


def _take(kind, payload, names, record):
    if kind == 2:
        (number,) = struct.unpack_from("<I", payload)
        names[number] = _text(payload, 4, "<H")[0]
    elif kind == 3:
        _, step, count = struct.unpack_from("<qQI", payload)
        for number, value in struct.iter_unpack("<Id", payload[20 : 20 + 12 * count]):
            record.points.append((names[number], step, value))
    elif kind == 4:
        has_step, step = struct.unpack_from("<BQ", payload, 8)
        what, at = _text(payload, 17, "<H")
        fields = {}
        (count,) = struct.unpack_from("<H", payload, at)
        at += 2
        for _ in range(count):
            name, at = _text(payload, at, "<H")
            fields[name], at = _text(payload, at, "<I")
        record.events.append((what, step if has_step else None, fields))
    elif kind == 5:
        name, at = _text(payload, 8, "<H")
        record.params.append((name, _text(payload, at, "<I")[0]))
    elif kind == 6:
        record.heartbeats.append(struct.unpack_from("<Q", payload, 8)[0])
    elif kind == 11:
        name_count, step_count = struct.unpack_from("<II", payload, 8)
        found = [names[number] for number in struct.unpack_from(f"<{name_count}I", payload, 16)]
        form, begin = struct.Struct(f"<Q{name_count}d"), 16 + 4 * name_count
        for step, *values in form.iter_unpack(payload[begin : begin + step_count * form.size]):
            record.points.extend((name, step, value) for name, value in zip(found, values, strict=True))


def _text(payload, at, form):
    (size,) = struct.unpack_from(form, payload, at)
    at += struct.calcsize(form)
    return payload[at : at + size].decode(), at + size
