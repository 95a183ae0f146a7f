"""The schema that editors use accepts what the loader accepts, and is up to date."""

from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from infra.stackspec import json_schema
from infra.stackspec.layers import PROFILES_FOLDER
from infra.stackspec.load import CONFIG

VALIDATOR = jsonschema.Draft202012Validator(json_schema.stack_file_schema())


def stack_file() -> Any:
    return YAML(typ="safe").load((CONFIG / "Pulumi.dev-aws.yaml").read_text())


def test_the_committed_schema_is_the_current_one() -> None:
    assert json_schema.PATH.read_text() == json_schema.text(), "run: python -m infra.stackspec.json_schema"


def test_the_shipped_stack_file_is_valid() -> None:
    assert [*VALIDATOR.iter_errors(stack_file())] == []


@pytest.mark.parametrize("layer", ["medium.yaml", "medium.aws.yaml"])
def test_a_profile_is_a_valid_spec(layer: str) -> None:
    content = stack_file()
    content["config"]["trainstack:spec"] = YAML(typ="safe").load((PROFILES_FOLDER / layer).read_text())
    assert [*VALIDATOR.iter_errors(content)] == []


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("poolz",), []),
        (("layout", "poolz"), []),
        (("layout", "pools", 0, "efa_count"), 4),
        (("layout", "pools", 0, "purchase"), {"kind": "cheap"}),
        (("layout", "pools", 0, "purchase"), {"kind": "spot", "id": "cr-0123456789abcdef0"}),
        (("layout", "max_hours"), 4),
        (("on", "project"), "a-project-of-google"),
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


@pytest.mark.parametrize(
    ("setting", "value", "field", "content"),
    [
        ("profile", "small", "layout", {"max_hours": 4}),
        ("profile", "large", "layout", {"scheduler": "slurm"}),
        ("cloud", "gcp", "on", {"project": "research-1"}),
        ("cloud", "existing", "on", {"kubeconfig_context": "lab"}),
    ],
)
def test_the_settings_choose_which_keys_an_editor_offers(
    setting: str, value: str, field: str, content: Any
) -> None:
    file = stack_file()
    file["config"]["trainstack:spec"][field] = content
    assert not VALIDATOR.is_valid(file)
    file["config"][f"trainstack:{setting}"] = value
    assert VALIDATOR.is_valid(file)
