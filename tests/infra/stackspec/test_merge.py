"""Merging: overriding wins, nothing else is lost, and order of writing is kept."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from infra.stackspec.document import node
from infra.stackspec.merge import merge, origins, values

KEYS = st.sampled_from(["a", "b", "c"])
LEAVES = st.one_of(st.integers(), st.booleans(), st.none(), st.lists(st.integers(), max_size=2))
TREES = st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8)
MAPS = st.dictionaries(KEYS, TREES, max_size=3)
NAMED = st.lists(st.sampled_from(["x", "y", "z"]), unique=True, min_size=1, max_size=3).flatmap(
    lambda names: st.tuples(*[st.fixed_dictionaries({"name": st.just(n), "v": st.integers()}) for n in names])
)


def merged(base: Any, over: Any) -> Any:
    return values(merge(node(base, "base"), node(over, "over")))


@given(MAPS)
def test_silence_changes_nothing(base: dict[str, Any]) -> None:
    assert merged(base, {}) == base
    assert merged({}, base) == base
    assert merged(base, base) == base


@given(MAPS, MAPS)
def test_what_is_said_last_holds_and_the_rest_is_kept(base: dict[str, Any], over: dict[str, Any]) -> None:
    result = merged(base, over)
    for key in base.keys() | over.keys():
        if key not in over:
            assert result[key] == base[key]
        elif isinstance(over[key], dict) and isinstance(base.get(key), dict):
            assert result[key] == merged(base[key], over[key])
        else:
            assert result[key] == over[key]


@given(st.dictionaries(KEYS, LEAVES), st.dictionaries(KEYS, LEAVES), st.dictionaries(KEYS, LEAVES))
def test_it_does_not_matter_which_two_of_three_are_merged_first(a: Any, b: Any, c: Any) -> None:
    left = merge(merge(node(a, "a"), node(b, "b")), node(c, "c"))
    right = merge(node(a, "a"), merge(node(b, "b"), node(c, "c")))
    assert values(left) == values(right)


@given(NAMED, NAMED)
def test_named_items_merge_by_name_and_keep_their_order(base: Any, over: Any) -> None:
    result = merged({"list": list(base)}, {"list": list(over)})["list"]
    names = [item["name"] for item in result]
    first = [item["name"] for item in base]
    assert names == first + [item["name"] for item in over if item["name"] not in first]
    latest = {item["name"]: item["v"] for item in (*base, *over)}
    assert {item["name"]: item["v"] for item in result} == latest


@given(MAPS)
def test_every_leaf_has_exactly_one_origin(base: dict[str, Any]) -> None:
    found = origins(node(base, "base"))
    assert all(origin.source == "base" for origin in found.values())


def test_a_list_with_a_repeated_name_is_replaced_as_a_whole() -> None:
    twice = [{"name": "x", "v": 1}, {"name": "x", "v": 2}]
    assert merged({"list": [{"name": "x", "v": 0}]}, {"list": twice}) == {"list": twice}


def test_an_item_is_removed_by_its_name_and_nothing_is_left_of_the_wish() -> None:
    base = {"list": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]}
    over = {"list": [{"name": "x", "remove": True}, {"name": "never", "remove": True}]}
    assert merged(base, over) == {"list": [{"name": "y", "v": 2}]}
