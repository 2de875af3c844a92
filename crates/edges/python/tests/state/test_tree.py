"""Values that are no tensors come back as they were, and what cannot be kept is refused by name."""

import collections
import json
import math
import random

import pytest

from trackway import InputError
from trackway._state import tree as _tree


def round_trip(value, template=None):
    text = json.dumps(_tree.Encoder().encode(value), allow_nan=False)
    return _tree.Decoder().decode(json.loads(text), template)


Point = collections.namedtuple("Point", "x y")

VALUES = [
    None, True, False, 0, -1, 2**70, "", "é\x00\U0001f600", 0.1, -0.0, 5e-324, 1.7976931348623157e308, 1e16,
    [], [1, [2, [3]]], {}, {"a": {"b": [None]}}, {"$": 1}, {1: 2, None: 3, (1, 2): "x", 2.5: [], False: 0},
    (), (1, ("a", None)), b"", bytes(range(256)), bytearray(b"ab"), 1 + 2j, {1, 2, "a"}, frozenset({3}),
    collections.Counter({3: 2, 1: 1}), collections.OrderedDict([("b", 1), ("a", 2)]),
    collections.deque([1, 2], maxlen=5),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values_come_back_equal_and_of_the_same_type(value):
    """Proves that a value survives, with its type, the order of its keys and the sign of its zero."""
    found = round_trip(value)
    assert type(found) is type(value)
    assert found == value
    assert repr(found) == repr(value) or isinstance(value, set | frozenset)


def test_floats_that_json_lacks():
    """Proves that NaN and infinities survive although JSON cannot express them."""
    assert math.isnan(round_trip(math.nan))
    assert round_trip([math.inf, -math.inf]) == [math.inf, -math.inf]


def test_every_float_is_exact():
    """Proves with random bit patterns that no float loses a digit."""
    rng = random.Random(1)
    values = [rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 300) for _ in range(2000)]
    assert round_trip(values) == values


def test_named_tuples_need_no_import():
    """Proves that a named tuple comes back with its fields, and as its own type where a template has it."""
    found = round_trip(Point(1, [2]))
    assert (found.x, found.y) == (1, [2])
    assert type(round_trip(Point(1, 2), Point(0, 0))) is Point


def test_generators_go_on_where_they_were():
    """Proves that a generator's next draws are the same after a round trip, in a new one and in a given one."""
    generator = random.Random(7)
    generator.gauss(0, 1)
    stored = json.dumps(_tree.Encoder().encode(generator))
    expected = [generator.gauss(0, 1) for _ in range(3)]
    given = random.Random(0)
    decoder = _tree.Decoder()
    for template in (None, given):
        found = decoder.decode(json.loads(stored), template)
        assert [found.gauss(0, 1) for _ in range(3)] == expected
    assert found is given


def test_a_dict_is_filled_in_place():
    """Proves that objects which others hold are filled rather than exchanged."""
    inner, outer = [0, 0], {}
    outer["inner"] = inner
    found = round_trip({"inner": [1, 2], "new": 3}, outer)
    assert found is outer and outer["inner"] is inner and inner == [1, 2] and outer["new"] == 3


def test_equal_sets_give_equal_text():
    """Proves that the text of a set does not depend on the order in which the interpreter walks through it."""
    one, other = set("abcdefgh"), set("hgfedcba")
    assert json.dumps(_tree.Encoder().encode(one)) == json.dumps(_tree.Encoder().encode(other))


class Opaque:
    pass


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": [Opaque()]}, ["a[0]", "Opaque", "state_dict"]),
        ({"f": len}, ["f is a builtin_function_or_method"]),
        ({"e": RuntimeError("x")}, ["e is a RuntimeError"]),
        ({"o": object}, ["o is a type"]),
    ],
)
def test_what_cannot_be_kept_is_named(value, words):
    """Proves that the message contains where the value is and what it is."""
    with pytest.raises(InputError) as caught:
        _tree.Encoder().encode(value)
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_value_that_contains_itself_is_refused():
    """Proves that recursion ends in an error rather than in a crash."""
    value = []
    value.append(value)
    with pytest.raises(InputError, match="contain itself"):
        _tree.Encoder().encode(value)


@pytest.mark.parametrize(
    "text", ['{"$":"os.system"}', '{"$":"__class__"}', '{"$":["tuple"]}', '{"$":"_read_tuple"}', '{"$":"pickle"}']
)
def test_unknown_words_run_nothing(text):
    """Proves that what a file names is looked up in a list, never imported."""
    with pytest.raises(InputError, match="does not support"):
        _tree.Decoder().decode(json.loads(text))
