"""Plans replace a resource of Google Cloud exactly where the provider's source does, for every property."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from infra.engine.plan import PlannedStep
from rehearsal.core.emulation.columns import covers
from rehearsal.core.properties import at, join
from rehearsal.core.schema import Property, ResourceSchema
from rehearsal.gcp.table import TABLE
from tests.rehearsal.gcp.harness import Driver
from trainstack.plans.drains import drains

# The provider would update it under an address that does not exist.
DECIDED = {("compute/resourcePolicy:ResourcePolicy", "name")}
CLUSTER, POOL = "container/cluster:Cluster", "container/nodePool:NodePool"
DISK, BUCKET = "compute/disk:Disk", "storage/bucket:Bucket"


def leaves(
    schema: ResourceSchema, fields: Mapping[str, Property], path: str = ""
) -> Iterator[tuple[str, Any]]:
    """(path of a scalar or list of scalars, inputs with a value there)."""
    for name, field in fields.items():
        here, form = join(path, name), field.type
        many = isinstance(form, dict) and "list" in form
        inner = form["list"] if many else form
        if isinstance(inner, dict) and "object" in inner:
            if here.count(".") < 4:
                for below, value in leaves(schema, schema.objects[inner["object"]]):
                    yield (
                        join(here, below) if "." not in below else f"{here}.{below}",
                        {name: [value] if many else value},
                    )
        elif not isinstance(inner, dict):
            yield here, {name: ["x"] if many else "x"}


def replaced(google: Driver, token: str, old: dict[str, Any], new: dict[str, Any]) -> bool:
    call = google.call(f"gcp:{token}", "x")
    return bool(google.cloud.diff(call, "x", old, old, new).replaces)


def other(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: other(item) for name, item in value.items()}
    return [other(item) for item in value] if isinstance(value, list) else "y"


@pytest.mark.parametrize("token", sorted(one.removeprefix("gcp:") for one in TABLE.rows))
def test_a_change_replaces_where_the_provider_says_so(token: str, google: Driver) -> None:
    schema = google.cloud._schemas.resource(f"gcp:{token}")  # type: ignore[attr-defined]
    facts = TABLE.changes.of(token)
    for path, value in leaves(schema, schema.inputs):
        if (token, path) in DECIDED:
            continue
        alike = facts.alike.get(path) or path in facts.defaults
        assert replaced(google, token, value, other(value)) == covers(facts.replace, path) or alike, path
        # With a value come the blocks around it.
        steps = path.split(".")
        above = [".".join(steps[: index + 1]) for index in range(len(steps))]
        replaces = any(covers(facts.replace, one) for one in above)
        assert replaced(google, token, {}, value) == replaces or alike, path


def test_what_only_decreases_by_a_replacement(google: Driver) -> None:
    for token, path, high, low in (
        (DISK, "size", 200, 100),
        (CLUSTER, "enableL4IlbSubsetting", True, False),
        (CLUSTER, "enableFqdnNetworkPolicy", True, False),
        ("compute/subnetwork:Subnetwork", "ipCidrRange", "10.0.0.0/16", "10.0.0.0/20"),
    ):
        assert replaced(google, token, {path: high}, {path: low}), path
        assert not replaced(google, token, {path: low}, {path: high}), path
    locked, open_ = ({"retentionPolicy": {"isLocked": one, "retentionPeriod": 1}} for one in (True, False))
    assert replaced(google, BUCKET, locked, open_) and not replaced(google, BUCKET, open_, locked)


def test_a_pool_is_replaced_where_a_block_brings_its_range(google: Driver) -> None:
    bare: dict[str, Any] = {"cluster": "gke", "name": "p"}
    ranged = {**bare, "networkConfig": {"podRange": "pods"}}
    assert replaced(google, POOL, bare, ranged)
    assert not replaced(google, POOL, bare, {**bare, "networkConfig": {"enablePrivateNodes": True}})
    assert at(ranged, "networkConfig.podRange") == "pods"


def test_a_plan_announces_every_drain_of_a_pool_that_the_provider_changes_in_place(google: Driver) -> None:
    """The provider replaces the pool for the others, which the plan announces by its operation."""
    schema = google.cloud._schemas.resource(f"gcp:{POOL}")  # type: ignore[attr-defined]
    node = schema.objects[schema.inputs["nodeConfig"].type["object"]]
    in_place = {name for name in node if not covers(TABLE.changes.of(POOL).replace, f"nodeConfig.{name}")}
    announced = {name for name in node if _announces(f"nodeConfig.{name}")}
    beside_nodes = {"labels", "resourceLabels", "resourceManagerTags", "tags", "taints", "taintConfig"}
    assert in_place - announced == beside_nodes | {"windowsNodeConfig"} and announced <= in_place


def _announces(path: str) -> bool:
    return bool([*drains([PlannedStep("update", f"gcp:{POOL}", "pool", (path,), {})])])


@pytest.mark.parametrize(
    ("limits", "same"), [(None, [80]), ({"cpu": "1"}, [80]), ({"cpu": "500m"}, []), ({"cpu": "4"}, [])]
)
def test_the_requests_of_an_instance_depend_on_its_processors(
    limits: dict[str, Any] | None, same: list[int], google: Driver
) -> None:
    resources = {"resources": {"limits": limits}} if limits else {}
    template: dict[str, Any] = {"containers": [{"image": "us-docker.pkg.dev/p/r/i", **resources}]}
    given: dict[str, Any] = {"location": "us-central1", "name": "web"}
    google.create("cloudrunv2/service:Service", "web", **given, template=template)
    for most in (80, 81):
        changed = google.diff("web", **given, template={**template, "maxInstanceRequestConcurrency": most})
        assert (changed.changed == ()) == (most in same), most
