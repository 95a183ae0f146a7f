"""One object with two owners, creates that are writes, and what a project has from the start."""

import json
from typing import Any

import pytest

from rehearsal.core.emulation.entries import Columns, relations
from rehearsal.core.schema import Schemas
from rehearsal.gcp import owners
from tests.rehearsal.gcp.harness import Driver

VIEWER, A, B = "roles/viewer", "user:a@example.com", "user:b@example.com"
# the prefix of the types, and the properties that name the resource
KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("projects/iAM", "IAM", {"project": "research"}),
    ("storage/bucketIAM", "BucketIAM", {"bucket": "b-1"}),
    ("bigquery/datasetIam", "DatasetIam", {"datasetId": "d"}),
]


def test_every_property_of_a_relation_exists(schemas: Schemas) -> None:
    for relation in relations(owners.FILE):
        for facet in relation.facets:
            assert isinstance(facet, Columns)
            schema = schemas.resource(f"gcp:{facet.type}")
            assert schema is not None, facet.type
            names = {path.partition("[]")[0].partition(".")[0] for path in facet.paths.values()} - {"id"}
            assert names <= schema.inputs.keys() | schema.outputs.keys(), facet.type


@pytest.mark.parametrize(("path", "name", "named"), KINDS)
def test_members_of_a_role_exclude_others(
    google: Driver, path: str, name: str, named: dict[str, Any]
) -> None:
    google.create("storage/bucket:Bucket", "bucket", name="b-1", location="US")
    member, binding = f"{path}Member:{name}Member", f"{path}Binding:{name}Binding"
    google.create(member, "first", **named, role=VIEWER, member=B)
    google.create(binding, "all", **named, role=VIEWER, members=[A])
    assert google.refresh("first") is None
    google.create(member, "again", **named, role=VIEWER, member=B)
    google.create(member, "other", **named, role="roles/editor", member=B)
    assert google.diff("all", **named, role=VIEWER, members=[A]).changed == ()
    shown = google.refresh("all")
    assert shown is not None and shown["members"] == [A, B]
    assert google.diff("all", **named, role=VIEWER, members=[A]).changed == ("members[1]",)
    google.update("all", **named, role=VIEWER, members=[A])
    assert google.refresh("again") is None and google.refresh("other") is not None


def test_a_policy_excludes_all_else(google: Driver) -> None:
    google.create("projects/iAMMember:IAMMember", "member", project="research", role=VIEWER, member=B)
    policy = google.invoke(
        "organizations/getIAMPolicy:getIAMPolicy", bindings=[{"role": VIEWER, "members": [A]}]
    )
    data = policy["policyData"]
    google.create("projects/iAMPolicy:IAMPolicy", "whole", project="research", policyData=data)
    assert google.refresh("member") is None
    google.create("projects/iAMMember:IAMMember", "member", project="research", role=VIEWER, member=B)
    shown = google.refresh("whole")
    assert shown is not None
    assert json.loads(shown["policyData"])["bindings"] == [{"members": [A, B], "role": VIEWER}]
    assert google.diff("whole", project="research", policyData=data).changed == ("policyData",)


def test_a_member_of_another_condition_is_another(google: Driver) -> None:
    member, condition = "projects/iAMMember:IAMMember", {"title": "t", "expression": "true"}
    one = google.create(member, "one", project="research", role=VIEWER, member=A)["id"]
    two = google.create(member, "two", project="research", role=VIEWER, member=A, condition=condition)["id"]
    assert one != two and not google.said


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("projects/iAMMember:IAMMember", {"project": "research", "role": VIEWER, "member": A}),
        ("projects/iAMBinding:IAMBinding", {"project": "research", "role": VIEWER, "members": [A]}),
    ],
)
def test_a_create_that_is_a_write_is_a_warning(google: Driver, token: str, inputs: dict[str, Any]) -> None:
    first = google.create(token, "one", **inputs)["id"]
    assert google.create(token, "two", **inputs)["id"] == first
    assert "::one" in google.said[-1]


def test_a_pool_inside_of_a_cluster_and_one_outside(google: Driver) -> None:
    inside: dict[str, Any] = {
        "location": "us-central1-a",
        "nodePools": [{"name": "in", "nodeCount": 1}],
        "deletionProtection": False,
    }
    cluster = google.create("container/cluster:Cluster", "c", name="c", **inside)["id"]
    google.create("container/nodePool:NodePool", "p", name="out", cluster=cluster, nodeCount=1)
    shown = google.refresh("c")
    assert shown is not None and [one["name"] for one in shown["nodePools"]] == ["in", "out"]
    diff = google.diff("c", name="c", **inside)
    assert {path.partition("[")[0] for path in diff.replaces} == {"nodePools"}


@pytest.mark.parametrize(
    ("token", "id"),
    [
        ("compute/network:Network", "projects/research/global/networks/default"),
        ("compute/network:Network", "default"),
        ("compute/subnetwork:Subnetwork", "projects/research/regions/europe-west4/subnetworks/default"),
        ("compute/firewall:Firewall", "research/default-allow-ssh"),
        ("compute/firewall:Firewall", "projects/research/global/firewalls/default-allow-internal"),
    ],
)
def test_the_default_network_is_read(google: Driver, token: str, id: str) -> None:
    found = google.get(token, id)
    assert found is not None and found["name"].startswith("default")
    assert google.get(token, f"{id}-not") is None


def test_default_accounts_are_found(google: Driver) -> None:
    email = google.invoke("compute/getDefaultServiceAccount:getDefaultServiceAccount")["email"]
    found = google.invoke("serviceaccount/getAccount:getAccount", accountId=email)
    assert found["email"] == email
    assert (
        google.get("serviceaccount/account:Account", f"projects/research/serviceAccounts/{email}") is not None
    )
