"""The schema that editors use accepts what the loader accepts, and is up to date."""

from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from infra.stackspec import json_schema
from infra.stackspec.layers import PROFILES_FOLDER
from infra.stackspec.load import CONFIG

VALIDATOR = jsonschema.Draft202012Validator(json_schema.stack_file_schema())


STACKS = sorted(path.name.split(".")[1] for path in CONFIG.glob("Pulumi.*.yaml"))


def stack_file(stack: str = "dev-aws") -> Any:
    return YAML(typ="safe").load((CONFIG / f"Pulumi.{stack}.yaml").read_text())


def test_the_committed_schema_is_the_current_one() -> None:
    assert json_schema.PATH.read_text() == json_schema.text(), "run: python -m infra.stackspec.json_schema"


def test_an_editor_shows_a_meaning_of_every_key() -> None:
    """At least three words, also for keys of no shipped stack. References are described at their target."""
    shown = 0
    for name, part in json_schema.stack_file_schema()["$defs"].items():
        for key, field in part.get("properties", {}).items():
            if "$ref" not in field:
                shown += 1
                assert len(field["description"].split()) >= 3, (name, key)
    assert shown > 200


@pytest.mark.parametrize("stack", STACKS)
def test_a_shipped_stack_file_is_valid(stack: str) -> None:
    assert [*VALIDATOR.iter_errors(stack_file(stack))] == []


def test_stack_files_of_both_clouds_are_shipped() -> None:
    assert {"dev-aws", "dev-gcp", "prod-gcp"} <= set(STACKS)


@pytest.mark.parametrize(
    ("layer", "stack"),
    [
        ("medium.yaml", "dev-aws"),
        ("medium.yaml", "dev-gcp"),
        ("medium.aws.yaml", "dev-aws"),
        ("medium.gcp.yaml", "dev-gcp"),
        ("small.yaml", "small-aws"),
        ("small.aws.yaml", "small-aws"),
        ("small-cluster.yaml", "small-eks-aws"),
        ("small-cluster.aws.yaml", "small-eks-aws"),
        ("small-cluster.yaml", "small-gke-gcp"),
        ("small-cluster.gcp.yaml", "small-gke-gcp"),
    ],
)
def test_a_profile_is_a_valid_spec(layer: str, stack: str) -> None:
    content = stack_file(stack)
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
    assert not VALIDATOR.is_valid(with_value("dev-aws", place, value))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("on", "admin_arns"), ["arn:aws:iam::123456789012:role/platform"]),
        (("on", "admins"), ["me@example.com"]),
        (("on", "channel"), "static"),
        (("on", "maintenance"), {"hours": 3}),
        (("on", "maintenance"), {"start": "24:00"}),
        (("on", "pods_per_node"), 257),
        (("on", "pools", "l4"), {"drivers": "latest"}),
        (("on", "pools", "l4"), {"sharing": {"kind": "time_sharing", "clients": 49}}),
        (("on", "pools", "l4"), {"sharing": {"kind": "mig", "clients": 2}}),
        (("on", "pools", "l4"), {"image_cache": "torch"}),
        (("on", "database"), {"tier": "db-n1-standard-1"}),
        (("on", "rapid_checkpoints"), "us-central1"),
        (("layout", "pools", 0, "purchase"), {"kind": "queued", "id": "projects/a/reservations/b"}),
        (("layout", "idle_minutes"), 4),
    ],
)
def test_and_so_on_google_cloud(place: tuple[Any, ...], value: Any) -> None:
    assert not VALIDATOR.is_valid(with_value("dev-gcp", place, value))


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"sharing": None},
        {"sharing": {"kind": "time_sharing", "clients": 48}},
        {"sharing": {"kind": "mig", "partition": "1g.5gb"}, "driver": "latest", "local_ssds": 2},
        {"image_cache": "projects/example-ml-dev/global/images/torch"},
    ],
)
def test_what_gke_asks_about_a_pool_is_offered(value: Any) -> None:
    assert VALIDATOR.is_valid(with_value("dev-gcp", ("on", "pools", "l4"), value))


def with_value(stack: str, place: tuple[Any, ...], value: Any) -> Any:
    content = stack_file(stack)
    target = content["config"]["trainstack:spec"]
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return content


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
