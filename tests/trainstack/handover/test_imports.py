"""Files of a handover that import resources: every resource, with the id that its provider documents."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from infra.places import PACKAGES
from rehearsal.core.emulation.changes import ChangeFacts
from tests.trainstack.dossier.given import STACKS, facts
from trainstack.dossier.architecture.parts import is_counted
from trainstack.handover.contents import bundle
from trainstack.handover.imports import imports


def made() -> dict[str, bytes]:
    return bundle("acme", [(facts(stack), {"evidence.json": b"{}\n"}) for stack in STACKS])


@pytest.mark.parametrize("stack", STACKS)
def test_every_resource_is_imported_or_named(stack: str) -> None:
    found = imports(facts(stack).resources, stack)
    urns = {one.urn for one in found.adopted} | {urn for urn, _ in found.left}
    assert urns == {row["urn"] for row in facts(stack).resources if is_counted(row)}
    rows = json.loads(found.pulumi())["resources"]
    assert len({(row["type"], row["name"]) for row in rows}) == len(rows)
    blocks = re.findall(
        r"import \{\n  to = ([a-z0-9_]+\.[A-Za-z_][\w-]*)\n  id = (\".*\")\n\}", found.terraform()
    )
    assert len(blocks) == sum(bool(one.terraform) for one in found.adopted) == len({to for to, _ in blocks})
    assert all("$" not in json.loads(text) for _, text in blocks)


def test_ids_for_imports_are_those_of_the_providers() -> None:
    """As in the section Import of the documentation of each resource."""
    found = {
        one.kind: (one.terraform, one.terraform_id)
        for stack in STACKS
        for one in imports(facts(stack).resources, stack).adopted
    }
    forms = {
        "aws:ec2/vpc:Vpc": ("aws_vpc", r"vpc-\w+"),
        "aws:ec2/route:Route": ("aws_route", r"rtb-\w+_0\.0\.0\.0/0"),
        "aws:ec2/routeTableAssociation:RouteTableAssociation": (
            "aws_route_table_association",
            r"subnet-\w+/rtb-\w+",
        ),
        "aws:eks/podIdentityAssociation:PodIdentityAssociation": (
            "aws_eks_pod_identity_association",
            r"dev-aws,a-\w+",
        ),
        "aws:rds/subnetGroup:SubnetGroup": ("aws_db_subnet_group", r"[\w-]+"),
        "aws:autoscaling/tag:Tag": ("aws_autoscaling_group_tag", r"[\w-]+,[\w./:-]+"),
        "gcp:projects/iAMMember:IAMMember": ("google_project_iam_member", r"example-ml-jobs \S+ \S+:\S+"),
        "gcp:pubsub/topicIAMMember:TopicIAMMember": (
            "google_pubsub_topic_iam_member",
            r"projects/[^/]+/topics/\S+ roles/\S+ \S+",
        ),
        "gcp:serviceaccount/account:Account": ("google_service_account", r"projects/\S+"),
        "kubernetes:core/v1:Namespace": ("kubernetes_manifest", r"apiVersion=v1,kind=Namespace,name=[\w-]+"),
        "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue": (
            "kubernetes_manifest",
            r"apiVersion=kueue.x-k8s.io/v1beta2,kind=LocalQueue,namespace=[\w-]+,name=[\w-]+",
        ),
        "kubernetes:helm.sh/v3:Release": ("helm_release", r"[\w-]+/[\w-]+"),
    }
    for kind, (name, form) in forms.items():
        assert found[kind][0] == name
        assert re.fullmatch(form, found[kind][1]), (kind, found[kind][1])


def row(kind: str, found: str, **values: Any) -> dict[str, Any]:
    """A resource of a state."""
    urn = f"urn:pulumi:s::p::trainstack:index:X${kind}::s-x"
    return {"urn": urn, "type": kind, "custom": True, "id": found, "inputs": values, "outputs": values}


@pytest.mark.parametrize(
    ("kind", "found", "values", "wanted"),
    [
        (
            "aws:cloudwatch/eventTarget:EventTarget", "s-rule-7-terraform-1",
            {"rule": "s-rule-7", "targetId": "terraform-1"}, "s-rule-7/terraform-1",
        ),
        (
            "aws:lambda/permission:Permission", "s-from-rule",
            {"function": "arn:aws:lambda:us-east-1:1:function:s-stop-7"}, "s-stop-7/s-from-rule",
        ),
        ("aws:lambda/permission:Permission", "s-from-rule", {"function": "s-stop-7"}, "s-stop-7/s-from-rule"),
        (
            "aws:cloudwatch/eventTarget:EventTarget", "own-s-rule-7-a",
            {"rule": "s-rule-7", "targetId": "a", "eventBusName": "own"}, "own/s-rule-7/a",
        ),
        (
            "gcp:projects/iAMMember:IAMMember", "p/roles/viewer/user:eve@example.com/at work//x == y",
            {"role": "roles/viewer", "member": "user:eve@example.com", "condition": {"title": "at work"}},
            "p roles/viewer user:eve@example.com at work",
        ),
        (
            "gcp:sql/user:User", "a/%/db", {"project": "p", "instance": "db", "host": "%", "name": "a"},
            "p/db/%/a",
        ),
        (
            "aws:ec2/subnetCidrReservation:SubnetCidrReservation", "scr-1", {"subnetId": "subnet-1"},
            "subnet-1:scr-1",
        ),
        (
            "gcp:storage/managedFolderIamMember:ManagedFolderIamMember",
            "b/s-data/managedFolders/audit//roles/storage.objectCreator/serviceAccount:a@p.iam",
            {"role": "roles/storage.objectCreator", "member": "serviceAccount:a@p.iam"},
            "b/s-data/managedFolders/audit/ roles/storage.objectCreator serviceAccount:a@p.iam",
        ),
    ],
)  # fmt: skip
def test_ids_that_are_made_from_values_have_the_documented_form(
    kind: str, found: str, values: dict[str, Any], wanted: str
) -> None:
    """The sections Import of hashicorp/terraform-provider-aws and -google (2026-08-21)."""
    (one,) = imports([row(kind, found, **values)], "s").adopted
    assert (one.id, one.terraform_id) == (wanted, wanted)


SDK = Path(importlib.util.find_spec("pulumi_aws").submodule_search_locations[0]).parent  # type: ignore[union-attr,index]
OF_TERRAFORM = {
    "aws:lambda/permission:Permission",
    "gcp:projects/iAMCustomRole:IAMCustomRole",
    "gcp:serviceaccount/account:Account",
    "gcp:storage/bucket:Bucket",
    "gcp:storage/bucketIAMMember:BucketIAMMember",
    "gcp:workbench/instanceIamMember:InstanceIamMember",
}
"""Types whose import is in the documentation of Terraform's provider alone (website/docs/r, 2026-08-21)."""


def documented(kind: str) -> bool:
    """The documentation of a resource in the SDK has the section Import, and does not refuse it."""
    package, module, _ = kind.split(":")
    folder, name = module.split("/")
    folders = [SDK / f"pulumi_{package}" / one for one in (folder, f"{folder}_")]
    files = [
        path for one in folders for path in one.glob("*.py") if path.stem.replace("_", "") == name.lower()
    ]
    (text,) = (path.read_text() for path in files)
    has = re.search(r"\$ (pulumi|terraform) import|can be imported|## Import", text)
    return has is not None and "does not support import" not in text


def kinds_of(cloud: str) -> set[str]:
    """Every type that a stack can have."""
    table = (PACKAGES / "infra" / "catalog" / cloud / "tables" / "permissions.toml").read_text()
    return set(re.findall(rf'"({cloud}:[a-zA-Z0-9]+/[a-zA-Z0-9]+:\w+)', table))


@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_every_type_of_the_stacks_has_a_documented_import_or_a_reason(cloud: str) -> None:
    kinds = kinds_of(cloud)
    assert len(kinds) > 40
    left = {kind for kind in kinds if imports([row(kind, "projects/x")], "s").left}
    assert {kind for kind in kinds - OF_TERRAFORM if not documented(kind)} <= left


@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_types_in_terraform_are_those_of_the_facts_of_the_provider(cloud: str) -> None:
    """Also of types that no recorded stack has: one unknown type fails a whole plan of Terraform."""
    facts_of = ChangeFacts(PACKAGES / "rehearsal" / cloud / "provider" / "changes.json")
    rows = [row(kind, "projects/x") for kind in kinds_of(cloud)]
    made = {one.kind.partition(":")[2]: one.terraform for one in imports(rows, "s").adopted if one.terraform}
    known = {token: facts_of.terraform(token) for token in made if token in facts_of.lines}
    assert len(known) > 30
    assert known == {token: made[token] for token in known}
