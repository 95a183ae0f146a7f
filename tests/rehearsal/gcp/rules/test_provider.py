"""Every fact of the provider's source refuses a mutation of it, at its path, and accepts what it allows."""

from collections.abc import Iterator
from typing import Any

import pytest

from rehearsal.core.model import UNKNOWN
from rehearsal.gcp.provider import facts
from rehearsal.gcp.rules import BOOK
from rehearsal.gcp.table import TABLE
from tests.rehearsal.gcp.harness import Driver

# Values that match none of the patterns and forms.
WRONG = ("deleted", "no match!", "-", "x" * 300)
# Longest texts of 2 GiB say that there is no limit; to make one takes a second.
UNBOUNDED = 2**31 - 1
WORDS = ("words", "words_any_case", "service_words")
VALUES = (*WORDS, "ranges", "pattern", "keys", "length", "items", "form")
CLUSTER, MEMBER = "container/cluster:Cluster", "projects/iAMMember:IAMMember"


def nested(path: str, value: Any) -> dict[str, Any]:
    """Inputs with a value at a path; `[]` stands for a list with it."""
    for name in reversed(path.split(".")):
        value = {name.removesuffix("[]"): [value] if name.endswith("[]") else value}
    assert isinstance(value, dict)
    return value


def merged(*parts: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            found[name] = merged(found[name], value) if isinstance(found.get(name), dict) else value
    return found


def wrong(fact: str, wanted: Any) -> Iterator[Any]:
    """Values of which a fact accepts none, or for patterns: at least one that it does not accept."""
    match fact:
        case "words" | "words_any_case" | "service_words":
            yield "NO_SUCH_WORD"
        case "ranges":
            lows, highs = zip(*wanted, strict=True)
            yield from [] if None in lows else [min(lows) - 1]
            yield from [] if None in highs else [max(highs) + 1]
        case "pattern" | "form":
            yield from WRONG
        case "keys":
            yield {"X-Google-Key!": "x"}
        case "length":
            yield from ["a" * (wanted[1] + 1)] if wanted[1] < UNBOUNDED else []
        case "items":
            yield ["x"] * (wanted[1] + 1 if wanted[1] else wanted[0] - 1)


def refused(token: str, inputs: dict[str, Any], path: str) -> bool:
    check = BOOK.rules[f"GCP-PROVIDER-{facts()[token]['terraform']}"].alone
    assert check is not None
    return any(violation.path.startswith(path.removesuffix("[]")) for violation in check(inputs))


def test_facts_are_of_every_type_of_the_tables() -> None:
    assert {f"gcp:{token}" for token in facts()} >= TABLE.rows.keys()


@pytest.mark.parametrize("token", sorted(facts()))
def test_a_wrong_value_is_refused_at_its_path(token: str) -> None:
    for fact in VALUES:
        for path, wanted in facts()[token].get(fact, {}).items():
            verdicts = [refused(token, nested(path, value), path) for value in wrong(fact, wanted)]
            assert verdicts and any(verdicts), (fact, path)
            assert all(verdicts) or fact in ("pattern", "form"), (fact, path)
        for path, allowed in facts()[token].get(fact, {}).items():
            if fact in WORDS:
                assert not any(refused(token, nested(path, word), path) for word in allowed), path


@pytest.mark.parametrize("token", sorted(facts()))
def test_a_wrong_combination_is_refused(token: str) -> None:
    of_type = facts()[token]
    for path, others in of_type.get("conflicts", {}).items():
        assert refused(token, merged(nested(path, True), nested(others[0], True)), path)
        assert refused(token, merged(nested(path, True), nested(others[0], False)), path)
    for path, others in of_type.get("partners", {}).items():
        assert refused(token, nested(path, True), path)
        assert not refused(token, merged(nested(path, True), *(nested(one, "0") for one in others)), path)
    for row in of_type.get("exactly_one", ()):
        block = nested(row["within"], {}) if row["within"] else {}
        at = row["within"] or row["of"][0]
        assert refused(token, block, at)
        assert not refused(token, merged(block, nested(row["of"][0], UNKNOWN)), at)
        if len(row["of"]) > 1:
            assert refused(token, merged(*(nested(one, "x") for one in row["of"][:2])), at)
    for row in of_type.get("some", ()):
        assert refused(
            token, nested(row["within"], {}) if row["within"] else {}, row["within"] or row["of"][0]
        )


def test_a_preview_does_not_judge_what_it_does_not_know() -> None:
    both = {"enableAutopilot": UNKNOWN, "removeDefaultNodePool": True, "initialNodeCount": 1}
    assert not refused(CLUSTER, both, "")
    assert refused(CLUSTER, {**both, "enableAutopilot": False}, "removeDefaultNodePool")


def test_the_engine_receives_it_before_anything_is_created(google: Driver) -> None:
    failures = google.check(CLUSTER, location="us-central1", initialNodeCount=1, loggingService="loud")
    assert failures.keys() == {"loggingService"}
