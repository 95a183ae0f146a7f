"""The schema that editors use accepts what the loader accepts, and is up to date."""

from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from infra.spec import json_schema
from infra.spec.load import CONFIG, PROFILES

VALIDATOR = jsonschema.Draft202012Validator(json_schema.stack_file_schema())


def stack_file() -> Any:
    return YAML(typ="safe").load((CONFIG / "Pulumi.dev-aws.yaml").read_text())


def test_the_committed_schema_is_the_current_one() -> None:
    assert json_schema.PATH.read_text() == json_schema.text(), "run: python -m infra.spec.json_schema"


def test_the_shipped_stack_file_is_valid() -> None:
    assert [*VALIDATOR.iter_errors(stack_file())] == []


def test_a_profile_is_a_valid_spec() -> None:
    content = stack_file()
    content["config"]["trainstack:spec"] = YAML(typ="safe").load((PROFILES / "medium.aws.yaml").read_text())
    assert [*VALIDATOR.iter_errors(content)] == []


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("poolz",), []),
        (("pools", 0, "efa_count"), 4),
        (("pools", 0, "capacity"), "cheap"),
        (("budget", "monthly_usd"), 0),
        (("smoke", "image"), "torch:latest"),
    ],
)
def test_what_the_loader_refuses_by_itself_the_schema_refuses_too(place: tuple[Any, ...], value: Any) -> None:
    content = stack_file()
    target = content["config"]["trainstack:spec"]
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    assert not VALIDATOR.is_valid(content)
