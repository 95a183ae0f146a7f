"""The tables of AWS against the service models of botocore and the types of the SDK."""

import functools
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import jmespath
import pytest
from botocore.exceptions import DataNotFoundError, UnknownServiceError

from policies.sources.live.form import Each, Joined, Kind, One
from policies.sources.live.question import Question
from policies.sources.live.tables import tables
from rehearsal.core import sdk_types

AWS = tables("aws")
SESSION = botocore.session.get_session()
RULES = Path(__file__).resolve().parents[4] / "policies" / "rules"
KINDS = {f"{kind.kind} {kind.question}": kind for kind in AWS.kinds}
WHERE = {"asked", "account", "region", "partition", "of", "it", "."}


@functools.cache
def service(name: str) -> Any:
    return SESSION.get_service_model(name)


def operation(question: Question) -> Any:
    return service(question.service).operation_model(question.operation)


@functools.cache
def paginated(name: str) -> frozenset[str]:
    """The operations that the SDK has a paginator for."""
    try:
        return frozenset(SESSION.get_paginator_model(name)._paginator_config)
    except (UnknownServiceError, DataNotFoundError):
        return frozenset()


def steps(path: str) -> list[str]:
    return [one for one in re.split(r"[.\[\]]+", path) if one]


def below(shape: Any, path: list[str]) -> Any:
    """The shape at a path through structures, lists and maps. Raises KeyError where there is none."""
    while shape.type_name == "list":
        shape = shape.member
    if not path:
        return shape
    return below(shape.value if shape.type_name == "map" else shape.members[path[0]], path[1:])


def item(question: Question) -> Any:
    return below(operation(question).output_shape, steps(question.key))


@pytest.mark.parametrize("question", AWS.questions.values(), ids=list(AWS.questions))
def test_a_question_is_one_of_its_service(question: Question) -> None:
    asked = operation(question)
    assert question.operation.startswith(("Describe", "List", "Get"))
    takes = asked.input_shape.members if asked.input_shape else {}
    assert {*question.given, *question.by} <= set(takes)
    needed = asked.input_shape.required_members if asked.input_shape else []
    assert set(needed) <= {*question.given, *question.by}
    item(question)
    jmespath.compile(question.key or "@")


@pytest.mark.parametrize(
    "question", [one for one in AWS.questions.values() if one.of], ids=lambda one: one.name
)
def test_a_question_about_others_takes_what_those_have(question: Question) -> None:
    owner = AWS.questions[question.of]
    for path in question.by.values():
        plain = path.strip("[]")
        if plain.startswith("asked."):
            assert plain.removeprefix("asked.") in owner.by
        elif plain == "it":
            assert item(owner).type_name == "string"
        elif plain != ".":
            below(item(owner), steps(plain))


def test_answers_go_on_where_the_sdk_or_the_collector_knows_how() -> None:
    from infra.collect.aws import _TOKENS

    for question in AWS.questions.values():
        if question.operation not in paginated(question.service):
            tells = operation(question).output_shape.members
            tokens = {name for name in tells if re.search("token|marker|evaluated", name, re.IGNORECASE)}
            takes = operation(question).input_shape
            assert {_TOKENS[name] for name in tokens} <= set(takes.members if takes else ())


def paths(shape: Any, shape_of: Any, joined: Any = None) -> Iterator[tuple[str, Any]]:
    """(path, shape that it is in) of every path in a table."""
    joined = joined or {}
    for how in shape.values():
        if isinstance(how, str):
            yield how, shape_of
        elif isinstance(how, Each | One):
            yield how.path, shape_of
            first = steps(how.path)
            if callable(joined.get(first[0])):
                continue
            if first[0] in joined:
                brought = item(AWS.questions[joined[first[0]].question])
                yield from paths(how.shape, below(brought, first[1:]))
            else:
                yield from paths(how.shape, below(shape_of, first))


@pytest.mark.parametrize("name", KINDS)
def test_paths_of_a_table_are_fields_of_the_answer(name: str) -> None:
    kind = KINDS[name]
    shape = item(AWS.questions[kind.question])
    if kind.each:
        shape = below(shape, steps(kind.each))
    templates = [kind.id, kind.name, kind.arn, kind.imported]
    named = [path for one in templates for path in re.findall(r"\{([\w.]+)\}", one)]
    rows = [*paths(kind.props, shape, kind.joined), *((path, shape) for path in [*named, kind.tags] if path)]
    for path, holder in rows:
        first, *rest = steps(path) or ["."]
        joined = kind.joined.get(first)
        if isinstance(joined, Joined):
            below(item(AWS.questions[joined.question]), rest)
        elif not joined and first not in WHERE and holder.type_name == "structure":
            below(holder, [first, *rest])


def state_of(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(properties, objects) of what the SDK reads of a type."""
    cls = sdk_types.resource_class(token)
    assert cls is not None, token
    reader = sdk_types._Reader()
    own = reader.properties(getattr(sys.modules[cls.__module__], f"_{cls.__name__}State"))
    return own, reader.objects


def nested(form: Any, objects: dict[str, Any]) -> tuple[bool, dict[str, Any] | None]:
    """(whether it is a list, the properties of the object in it)."""
    if isinstance(form, dict) and "union" in form:
        return nested(next(one for one in form["union"] if isinstance(one, dict)), objects)
    if isinstance(form, dict) and "list" in form:
        return True, nested(form["list"], objects)[1]
    if isinstance(form, dict) and "object" in form:
        return False, objects[form["object"]]
    return False, None


def held_against(shape: Any, properties: dict[str, Any], objects: dict[str, Any], where: str) -> None:
    for name, how in shape.items():
        assert name in properties, f"{where}.{name}"
        listed, inside = nested(properties[name]["type"], objects)
        if isinstance(how, Each | One):
            assert inside is not None, f"{where}.{name}"
            assert listed is isinstance(how, Each), f"{where}.{name}"
            held_against(how.shape, inside, objects, f"{where}.{name}")


@pytest.mark.parametrize("name", KINDS)
def test_a_table_makes_properties_that_the_sdk_has(name: str) -> None:
    importlib.import_module("pulumi_aws")
    kind: Kind = KINDS[name]
    properties, objects = state_of(kind.kind)
    held_against(kind.props, properties, objects, name)
    assert {*kind.untold, *kind.keys} <= set(properties)
    if kind.tags:
        assert "tags" in properties
    if kind.arn:
        assert "arn" in properties


def test_every_type_that_a_rule_names_is_told_or_has_another_form() -> None:
    told = {*(kind.kind for kind in AWS.kinds), *AWS.elsewhere}
    rules = [file.read_text() for file in RULES.rglob("*.py")]
    token = r'"(aws:[a-z0-9]+/[A-Za-z0-9]+:[A-Za-z0-9]+)"'
    named = {found for text in rules for found in re.findall(token, text)}
    settings = {found for text in rules for found in re.findall(r'settings_of\([^"]*"(\w+)"\)', text)}
    assert "bucketWebsiteConfiguration" in settings
    named |= {f"aws:s3/{one}{old}:{one[0].upper()}{one[1:]}{old}" for one in settings for old in ("", "V2")}
    assert len(named) > 60
    assert named <= told, named - told
