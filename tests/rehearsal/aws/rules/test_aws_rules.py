"""Every rule of the book: valid inputs, and inputs that violate only this rule at a stated path."""

import dataclasses
from collections.abc import Iterator, Mapping

import pytest

from infra.discovery import gathered
from rehearsal.aws.rules import BOOK
from rehearsal.core.model import CheckFailure, RefusalError
from rehearsal.core.schema import Schemas
from rehearsal.core.validate import validate
from tests.rehearsal.aws.rules.bases import BASES
from tests.rehearsal.aws.rules.furnish import furnish
from tests.rehearsal.aws.rules.world import Example, World
from tests.rehearsal.driver import CACHE

EXAMPLES: Mapping[str, Example] = gathered("tests.rehearsal.aws.rules.examples", "EXAMPLES")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    schemas = Schemas("aws", CACHE)
    world = World(tmp_path_factory.mktemp("world"), schemas)
    furnish(world)
    yield world
    world.state.close()
    schemas.close()


def test_every_rule_has_an_example_and_a_source() -> None:
    # Mutations of every fact and list are in test_values.py.
    of_data = ("AWS-VALUES-", "AWS-PROVIDER-", "AWS-REQUEST-", "AWS-LIST-", "AWS-NEWER-")
    assert set(EXAMPLES) == {rule for rule in BOOK.rules if not rule.startswith(of_data)}
    assert all(rule.source and rule.summary.endswith(".") for rule in BOOK.rules.values())
    assert len(BOOK.rules) >= 80


@pytest.mark.parametrize("type", BASES)
def test_bases_break_no_rule_and_fit_the_schema(world: World, type: str) -> None:
    example = Example(type, "", {})
    assert world.broken(example, {}) == []
    schema = world.schemas.resource(f"aws:{type}")
    assert schema is not None and validate(schema, world.inputs(example, {})) == []


@pytest.mark.parametrize("rule", EXAMPLES)
def test_the_rule_refuses_what_it_is_about_and_nothing_else(world: World, rule: str) -> None:
    example = EXAMPLES[rule]
    assert world.broken(example, example.accepted) == []
    assert (rule, example.path) in world.broken(example, example.refused)
    broken = {found for found, _ in world.broken(example, example.refused)}
    # What the provider refuses, too, stays refused without this rule.
    assert {found for found in broken if not found.startswith("AWS-PROVIDER-")} == {rule}


@pytest.mark.parametrize("rule", EXAMPLES)
def test_examples_fit_the_schema(world: World, rule: str) -> None:
    example = EXAMPLES[rule]
    schema = world.schemas.resource(f"aws:{example.type}")
    assert schema is not None
    for changes in (example.accepted, example.refused):
        assert validate(schema, world.inputs(example, changes)) == []


def test_a_check_and_a_create_report_rule_path_and_fix(world: World) -> None:
    alone = EXAMPLES["AWS-VPC-001"]
    call = world.call(f"aws:{alone.type}", "new")
    _, failures = world.cloud.check(call, None, world.inputs(alone, alone.refused))
    reason = "[AWS-VPC-001] 10.9.0.1/16 is not a valid IPv4 CIDR block. Did you mean 10.9.0.0/16?"
    assert failures == [CheckFailure("cidrBlock", reason)]
    around = EXAMPLES["AWS-VPC-005"]
    call = world.call(f"aws:{around.type}", "new")
    with pytest.raises(RefusalError) as caught:
        world.cloud.create(call, world.inputs(around, around.refused), preview=True)
    assert caught.value.code == "InvalidSubnet.Conflict"
    assert "[AWS-VPC-005]" in str(caught.value) and "(property cidrBlock)" in str(caught.value)


def test_advice_is_a_warning(world: World) -> None:
    example = EXAMPLES["AWS-EFA-003"]
    messages: list[str] = []
    call = world.call(f"aws:{example.type}", "new")
    call = dataclasses.replace(call, log=lambda severity, message: messages.append(f"{severity}: {message}"))
    world.cloud.create(call, world.inputs(example, example.refused), preview=False)
    assert any(text.startswith("warning: [AWS-EFA-003]") for text in messages)
