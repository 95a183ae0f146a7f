"""Every rule on recorded resources that pass it, that fail it where they say, and both with holes."""

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policies.evaluate import RuleOutcome, evaluate
from policies.rules import CATALOG
from policies.settings import RuleSettings
from policies.sources import state
from policies.stack import Stack
from tests.policies.mutants.mutation import GONE, put
from tests.policies.mutants.mutation import Path as Place
from tests.policies.recording.example import rule_of
from tests.policies.recording.record import EXAMPLES, made
from tests.policies.recording.recordings import digest, export
from tests.policies.recording.recordings import keys as recorded

LATER = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
KEYS = sorted(EXAMPLES)
SETTINGS = RuleSettings(today=datetime.date(2026, 11, 23))


@pytest.fixture
def judged(tmp_path: Path) -> Any:
    def judge(key: str, export: Any) -> list[RuleOutcome]:
        file = tmp_path / "export.json"
        file.write_text(json.dumps(export))
        return evaluate(Stack(state.read(file), SETTINGS), [CATALOG.rules[rule_of(key)]])

    return judge


def test_every_rule_has_examples_and_every_example_a_rule() -> None:
    assert {rule_of(key) for key in EXAMPLES} == CATALOG.rules.keys()
    assert recorded() == KEYS


@pytest.mark.parametrize("key", KEYS)
def test_the_records_are_of_the_examples_as_they_are(key: str) -> None:
    assert digest(key) == EXAMPLES[key].digest, "python -m tests.policies.recording.record"


@pytest.mark.parametrize("key", KEYS)
def test_an_example_passes_or_fails_where_it_says(key: str, judged: Any) -> None:
    passed = judged(key, export(key, "pass"))
    assert {one.result for one in passed} <= {"pass", "not-applicable"}, passed
    assert "pass" in {one.result for one in passed}, passed
    example = EXAMPLES[key]
    failed = [one for one in judged(key, export(key, "fail")) if one.result == "fail"]
    assert {(one.resource.name if one.resource else "", one.path) for one in failed} == {
        (example.at, example.path)
    }
    assert all(one.fix and one.message for one in failed)


@pytest.mark.parametrize("key", KEYS)
def test_what_is_not_known_never_turns_a_failure_into_a_pass(key: str, judged: Any) -> None:
    """And no hole makes a rule itself fail: it judges, or says which value it lacks."""
    for hidden in holes(export(key, "fail"), LATER):
        outcomes = judged(key, hidden)
        results = {one.result for one in outcomes}
        faulty = [one.message for one in outcomes if one.message.startswith("the rule itself failed")]
        assert not faulty
        assert results & {"fail", "undetermined"}, outcomes


@pytest.mark.parametrize("key", KEYS)
def test_a_rule_judges_resources_that_lack_any_property(key: str, judged: Any) -> None:
    for verdict in ("pass", "fail"):
        for lacking in holes(export(key, verdict), GONE):
            faulty = [
                one.message
                for one in judged(key, lacking)
                if one.message.startswith("the rule itself failed")
            ]
            assert not faulty


def holes(export: Any, instead: Any) -> Iterator[Any]:
    """The export with one value at a time replaced in inputs and outputs alike, or left out."""
    rows = export["deployment"]["resources"]
    for number, row in enumerate(rows):
        if row["type"].startswith("pulumi:"):
            continue
        paths = {
            path
            for part in ("inputs", "outputs")
            for path in leaves(row.get(part) or {})
            if path[0] != "tagsAll"
        }
        for path in sorted(paths, key=str):
            changed = export
            for part in ("inputs", "outputs"):
                changed = put(changed, ("deployment", "resources", number, part, *path), instead)
            yield changed


def leaves(value: Any, path: Place = ()) -> Iterator[Place]:
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in pairs:
        yield from leaves(below, (*path, key))


def test_an_example_is_recorded_by_the_real_engine(tmp_path: Path, judged: Any) -> None:
    key = "MLS-COST-07"
    again = made(tmp_path / "home", "fail", EXAMPLES[key].failing)
    kept = export(key, "fail")
    assert [row["urn"] for row in again["deployment"]["resources"]] == [
        row["urn"] for row in kept["deployment"]["resources"]
    ]
    assert [one.message for one in judged(key, again)] == [one.message for one in judged(key, kept)]
