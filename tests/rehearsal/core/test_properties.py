"""Paths, differences and the engine's encoding."""

from typing import Any

from google.protobuf import struct_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal.core.model import UNKNOWN
from rehearsal.core.properties import at, carried, changed, head, walk
from rehearsal.core.wire import from_struct, to_struct

_NAMES = st.text(alphabet='ab.["]\\ -/', min_size=1, max_size=5)
_SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5) | st.just(UNKNOWN)
_TREES = st.dictionaries(
    _NAMES,
    st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=3,
)


@settings(max_examples=200)
@given(_TREES)
def test_every_scalar_is_found_at_its_path(tree: dict[str, Any]) -> None:
    for path, value in walk(tree):
        assert at(tree, path) == value


@settings(max_examples=200)
@given(_TREES)
def test_the_encoding_keeps_every_value(tree: dict[str, Any]) -> None:
    assert from_struct(to_struct(tree)) == tree


@settings(max_examples=200)
@given(_TREES, _TREES)
def test_differences_are_found_exactly_where_there_are_some(old: dict[str, Any], new: dict[str, Any]) -> None:
    paths = changed(old, new)
    if old == new:
        assert paths == []
    assert len(set(paths)) == len(paths)
    for path in paths:
        assert at(old, path) != at(new, path)


@settings(max_examples=200)
@given(_TREES, _TREES)
def test_an_update_equals_the_inputs_where_the_service_added_nothing(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert carried(old, old, new) == new


def test_an_update_keeps_values_of_the_service_at_any_depth() -> None:
    gave = {"a": 1, "gone": 1, "block": {"b": 1, "old": 2}, "items": [{"c": 1}], "dropped": {"d": 1}}
    had = {
        "a": 1,
        "gone": 1,
        "made": "x",
        "block": {"b": 1, "old": 2, "made": "y"},
        "items": [{"c": 1, "made": "z"}],
        "dropped": {"d": 1, "made": "w"},
    }
    assert carried(had, gave, {"a": 2, "block": {"b": 2}, "items": [{"c": 2}]}) == {
        "a": 2,
        "made": "x",
        "block": {"b": 2, "made": "y"},
        "items": [{"c": 2, "made": "z"}],
        "dropped": {"made": "w"},
    }
    assert carried(had, gave, {"items": [{"c": 1}, {"c": 2}]})["items"] == [{"c": 1}, {"c": 2}]


def test_differences_are_deep() -> None:
    old = {"a": {"b": [1, 2], "c": 3}, "gone": 1}
    new = {"a": {"b": [1, 5, 6], "c": 3}, "x.y": 1}
    assert changed(old, new) == ["a.b[1]", "a.b[2]", "gone", '["x.y"]']
    assert [head(path) for path in changed(old, new)] == ["a", "a", "gone", "x.y"]


def test_an_unknown_differs_from_what_is_known() -> None:
    assert changed({"a": 1}, {"a": UNKNOWN}) == ["a"]


def test_marked_values_are_unwrapped() -> None:
    sign = "4dabf18193072939515e22adb298388d"
    struct = struct_pb2.Struct()
    struct["secret"] = {sign: "1b47061264138c4ac30d75fd1eb44270", "value": "x"}
    struct["output"] = {sign: "d0e6a833031e9bbcd3f4e8bde6ca49a4"}
    struct["reference"] = {sign: "5cf8f73096256a8f31e491e813e4eb8e", "urn": "urn:x", "id": "i-1"}
    assert from_struct(struct) == {"secret": "x", "output": UNKNOWN, "reference": "i-1"}
