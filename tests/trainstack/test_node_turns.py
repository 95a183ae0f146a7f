"""Groups of nodes that are validated together, and suspect nodes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.verdict_record import VerdictRecord
from trainstack.node_turns import begun, ended, groups, result_text, suspects


@pytest.mark.parametrize(
    ("nodes", "size", "expected"),
    [
        ("abc", 1, ["a", "b", "c"]),
        ("ab", 2, ["ab"]),
        ("abc", 2, ["ab", "bc", "ca"]),
        ("abcde", 3, ["abc", "cde", "eab"]),
        ("abcd", 3, ["abc", "cda"]),
    ],
)
def test_groups_overlap(nodes: str, size: int, expected: list[str]) -> None:
    assert ["".join(group) for group in groups([*nodes], size)] == expected


@given(count=st.integers(1, 40), size=st.integers(1, 8))
def test_every_node_is_in_a_group_and_no_group_holds_a_node_twice(count: int, size: int) -> None:
    nodes = [f"n{index}" for index in range(count)]
    if size > count:
        with pytest.raises(ValueError, match="make no group"):
            groups(nodes, size)
        return
    made = groups(nodes, size)
    assert {node for group in made for node in group} == {*nodes}
    assert all(len({*group}) == size for group in made)


@given(count=st.integers(3, 40), data=st.data())
def test_one_bad_node_among_pairs_is_named(count: int, data: st.DataObject) -> None:
    nodes = [f"n{index}" for index in range(count)]
    bad = data.draw(st.sampled_from(nodes))
    assert suspects({group: bad not in group for group in groups(nodes, 2)}) == [bad]


def test_two_nodes_alone_are_both_suspect() -> None:
    assert suspects({("a", "b"): False}) == ["a", "b"]
    assert suspects({("a", "b"): True}) == []


def status(**fields: Any) -> dict[str, Any]:
    return {"spec": {"completions": 2}, "status": fields}


def test_how_far_a_run_is() -> None:
    assert ended({}) is None
    for kind, well in (("Complete", True), ("Failed", False)):
        assert ended(status(conditions=[{"type": kind, "status": "True"}])) is well
    assert ended(status(conditions=[{"type": "Suspended", "status": "True"}])) is None
    assert (
        not begun(status(active=2, ready=1)) and begun(status(ready=2)) and begun(status(failed=1, ready=1))
    )


def test_its_verdict_is_that_of_the_node_that_judges() -> None:
    def pod(message: str) -> dict[str, Any]:
        state = {"terminated": {"exitCode": 1, "message": message}}
        return {"status": {"containerStatuses": [{"state": state}]}}

    assert result_text([{"status": {}}, pod(""), pod("FAIL: link is slow\nmore")]) == "FAIL: link is slow"
    assert result_text([pod(VerdictRecord("FAIL", "FAIL: rank 1").line())]) == "FAIL: rank 1"
    assert result_text([]) == "no termination message"
