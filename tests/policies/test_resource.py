"""A value that is not known is never taken for one that is."""

import json
import operator
from collections.abc import Callable
from typing import Any

import pytest

from policies.resource import PartlyKnown, Resource, UndeterminedError, UnknownValue, is_unknown

HIDDEN: Any = UnknownValue("vpcConfig.publicAccessCidrs", "is a secret")
LOOKS: dict[str, Callable[[], object]] = {
    "truth": lambda: bool(HIDDEN),
    "equality": lambda: HIDDEN == "0.0.0.0/0",
    "equality from the other side": lambda: HIDDEN == "0.0.0.0/0",
    "inequality": lambda: HIDDEN != 1,
    "order": lambda: HIDDEN < 3,
    "order from the other side": lambda: HIDDEN > 3,
    "class": lambda: isinstance(HIDDEN, str),
    "one of classes": lambda: isinstance(HIDDEN, dict | list),
    "length": lambda: len(HIDDEN),
    "item": lambda: HIDDEN["x"],
    "attribute": lambda: HIDDEN.get("x"),
    "walk": lambda: list(HIDDEN),
    "search in it": lambda: "x" in HIDDEN,
    "search for it": lambda: HIDDEN in ["x"],
    "member of a set": lambda: HIDDEN in {"x"},
    "text": lambda: str(HIDDEN),
    "part of a text": lambda: f"arn:{HIDDEN}",
    "number": lambda: int(HIDDEN),
    "sum": lambda: 1 + HIDDEN,
    "any": lambda: any([HIDDEN]),
    "sorted": lambda: sorted([HIDDEN, 1]),
    "index": lambda: operator.index(HIDDEN),
    "JSON": lambda: json.dumps([HIDDEN]),
}


@pytest.mark.parametrize("look", LOOKS)
def test_looking_at_it_raises_with_its_place(look: str) -> None:
    with pytest.raises(UndeterminedError, match=r"vpcConfig\.publicAccessCidrs is"):
        LOOKS[look]()


def test_it_can_be_shown_and_asked_for() -> None:
    assert repr(HIDDEN).startswith("<unknown: vpcConfig.publicAccessCidrs ")
    assert is_unknown(HIDDEN)
    assert not is_unknown("x")


READS: dict[str, Callable[[Any], object]] = {
    "get": lambda props: props.get("a") is True,
    "item": lambda props: props["a"] is True,
    "in": lambda props: "a" in props,
    "values": lambda props: [value is True for value in props.values()],
    "items": lambda props: [value is True for _, value in props.items()],
}


@pytest.mark.parametrize("read", READS)
def test_an_object_does_not_hand_it_out(read: str) -> None:
    props = PartlyKnown({"a": HIDDEN, "b": 1})
    with pytest.raises(UndeterminedError):
        READS[read](props)
    assert props.get("b") == 1
    assert props.get("c") is None
    assert sorted(props) == ["a", "b"]


def test_what_only_a_cloud_sets_is_awaited_where_it_is_planned() -> None:
    planned = Resource("k", "urn", "n", origin="planned")
    with pytest.raises(UndeterminedError, match=r"^arn is not"):
        planned.computed("arn")
    assert Resource("k", "urn", "n").computed("arn") is None
