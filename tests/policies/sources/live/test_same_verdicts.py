"""Recorded states, made again in an emulated account: rules say of both the same, or that they cannot say.

tests/rehearsal/runs/test_medium_stack.py asks the same of a whole stack, which passes nearly every rule.
"""

import datetime
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from policies.evaluate import evaluate
from policies.rules import CATALOG
from policies.settings import RuleSettings
from policies.sources.live.mapping import AnswerIndex, View
from policies.sources.live.queries import Answers, ApiQuery, ApiRefusal
from policies.sources.live.records import account
from policies.sources.live.snapshot import Snapshot
from policies.sources.live.tables import tables
from policies.stack import Stack
from tests.policies.recording.example import rule_of
from tests.policies.sources.live.remade.examples import World, keys, rows, world
from tests.policies.sources.live.remade.twins import MAKERS
from tests.policies.sources.live.remade.verdicts import ALONE, Verdicts, compared

SETTINGS = RuleSettings(today=datetime.date(2026, 11, 23))
AWS = tables("aws")
ABSENT = {"MLS-RES-01": "a snapshot is of one region, and what fails is in another"}


@pytest.fixture(scope="module", name="made")
def _made() -> Iterator[World]:
    yield world()
    world.cache_clear()


def test_every_type_of_the_examples_in_an_account_is_created() -> None:
    kinds = {row["type"] for key in keys() for row in rows(key)}
    assert kinds & {kind.kind for kind in AWS.kinds} <= MAKERS.keys()
    groups = {key.split("-")[1] for key in keys()}
    assert groups >= {"COST", "GPU", "IAM", "K8S", "NET", "REP", "RES", "STO", "TAG", "TRK"}


@pytest.mark.parametrize("key", keys())
def test_rules_say_of_an_account_what_they_say_of_its_state(key: str, made: World) -> None:
    found, rule = compared(made.of(key), SETTINGS), rule_of(key)
    assert (found.alone, found.joined) == ([], [])
    assert (rule, "fail") in found.said or rule in ALONE or rule in ABSENT


def verdicts(source: Snapshot) -> Verdicts:
    reported = account(source)
    found: dict[tuple[str, str], frozenset[str]] = {}
    for one in evaluate(Stack(reported.resources, SETTINGS, reported.coverage), CATALOG.rules.values()):
        found[one.rule.id, one.urn] = found.get((one.rule.id, one.urn), frozenset()) | {one.result}
    return found


@pytest.fixture(scope="module", name="answered")
def _answered(made: World) -> Verdicts:
    return verdicts(made.whole.account.snapshot)


def refusing(source: Snapshot, question: ApiQuery) -> Snapshot:
    """The same answers, but one operation is denied each time, and nothing asked about what it hid."""
    right = f"{question.service}:{question.operation}"
    said = partial(ApiRefusal, "AccessDeniedException", "not allowed", right)
    look = AnswerIndex(source.account, source.region, source.answers)
    about = [View(item, look) for item in source.answers[question.of].items] if question.of else []
    asked = [{name: view.at(path) for name, path in question.by.items()} for view in about] or [{}]
    answers = {**source.answers, question.name: Answers((), tuple(said(one) for one in asked))}
    return replace(source, answers={**answers, **dict.fromkeys(_behind(question), Answers())})


def _behind(question: ApiQuery) -> list[str]:
    """The queries that depend on another one."""
    own = [one for one in AWS.queries.values() if one.of == question.name]
    return [name for one in own for name in (one.name, *_behind(one))]


@pytest.mark.parametrize("question", AWS.queries.values(), ids=list(AWS.queries))
def test_what_is_refused_is_never_taken_for_absent(
    question: ApiQuery, made: World, answered: Verdicts
) -> None:
    """No rule passes, fails or has nothing to judge because of it; who depends on it is undetermined."""
    source = refusing(made.whole.account.snapshot, question)
    found = verdicts(source)
    open_rules = {rule for (rule, _), results in found.items() if "undetermined" in results}
    for key, results in found.items():
        new = results - answered.get(key, frozenset()) - {"undetermined"}
        assert not new or (new == {"not-applicable"} and key[0] in open_rules), (key, new)
    gone = {key[0] for key, results in answered.items() if results - found.get(key, frozenset())}
    assert gone <= open_rules
    hidden = {question.name, *_behind(question)}
    about = {kind.kind for kind in AWS.kinds if kind.query in hidden}
    # A rule of the stack as a whole names types that only make it worth asking; what it reads, it asks for.
    depending = {one.id for one in CATALOG.rules.values() if about & {*one.kinds} and not one.whole}
    assert depending <= open_rules
