"""The bundle of a handover: contents, checksums, the way out, and what keeps it from being written."""

import csv
import dataclasses
import hashlib
import importlib.util
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from infra.places import PACKAGES, PROGRAM
from policies.evidence import writer
from tests.trainstack.cli.command import run
from tests.trainstack.dossier import given
from tests.trainstack.dossier.given import STACKS, facts, recorded
from trainstack.dossier.architecture.parts import is_counted
from trainstack.dossier.facts import StackFacts
from trainstack.handover import exit_plan, scan
from trainstack.handover.contents import bundle
from trainstack.handover.imports import imports
from trainstack.handover.neighbours import names_of_others


def made() -> dict[str, bytes]:
    return bundle("acme", [(facts(stack), {"evidence.json": b"{}\n"}) for stack in STACKS])


def test_every_file_is_in_the_manifest(tmp_path: Path) -> None:
    writer.write(tmp_path / "bundle", made(), "--out")
    lines = (tmp_path / "bundle" / "manifest.sha256").read_text().splitlines()
    listed = dict(line.split("  ", 1)[::-1] for line in lines)
    found = {
        str(path.relative_to(tmp_path / "bundle")): path
        for path in (tmp_path / "bundle").rglob("*")
        if path.is_file()
    }
    assert {*found} == {*listed, "manifest.sha256"}
    for name, digest in listed.items():
        assert hashlib.sha256(found[name].read_bytes()).hexdigest() == digest
    for stack in STACKS:
        parts = (
            "report.html",
            "report.json",
            "outputs.json",
            "outputs.schema.json",
            "settings.json",
            "inventory.csv",
            "evidence/evidence.json",
            "exit/README.md",
            "exit/plan.json",
            "exit/pulumi-import.json",
            "exit/imports.tf",
        )
        assert {f"{stack}/{part}" for part in parts} <= {*found}


def test_the_same_facts_give_the_same_bytes() -> None:
    assert made() == made()


def test_each_link_of_its_pages_leads_to_a_file() -> None:
    files = made()
    for link in re.findall(r"\]\(([^)]+)\)", files["README.md"].decode()):
        assert link in files


def test_runbooks_are_those_of_the_alerts() -> None:
    rule = {
        "urn": "urn:pulumi:dev-aws::trainstack::kubernetes:monitoring.coreos.com/v1:PrometheusRule::rules",
        "type": "kubernetes:monitoring.coreos.com/v1:PrometheusRule",
        "custom": True,
        "inputs": {"spec": {"groups": [{"rules": [{"alert": "KueueDown"}, {"alert": "NoPage"}]}]}},
    }
    rows = [row for row in recorded("dev-aws")["resources"] if "alarm" not in row["urn"].lower()]
    files = bundle("acme", [(dataclasses.replace(facts("dev-aws"), resources=[*rows, rule]), {})])
    assert [name for name in files if name.startswith("runbooks/")] == ["runbooks/orchestration/KueueDown.md"]


@pytest.mark.parametrize("stack", STACKS)
def test_the_inventory_has_every_resource_and_its_owner(stack: str) -> None:
    rows = [*csv.DictReader(io.StringIO(made()[f"{stack}/inventory.csv"].decode()))]
    assert len(rows) == sum(map(is_counted, facts(stack).resources))
    assert all(row["owner"] and row["layer"] and row["name"] for row in rows)
    assert {row["type"] for row in rows if row["holds_data"]} >= {
        "aws:s3/bucket:Bucket" if stack == "dev-aws" else "gcp:storage/bucket:Bucket"
    }


def test_a_cell_is_no_formula() -> None:
    rows = json.loads(json.dumps(recorded("dev-aws")["resources"]))
    for row in rows:
        row.setdefault("inputs", {})["tags"] = {"owner": "=HYPERLINK(1)"}
        row.pop("outputs", None)
    files = bundle("acme", [(dataclasses.replace(facts("dev-aws"), resources=rows), {})])
    owners = {row["owner"] for row in csv.DictReader(io.StringIO(files["dev-aws/inventory.csv"].decode()))}
    assert owners == {"'=HYPERLINK(1)"}


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


@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_every_type_of_the_stacks_has_a_documented_import_or_a_reason(cloud: str) -> None:
    table = (PACKAGES / "infra" / "catalog" / cloud / "tables" / "permissions.toml").read_text()
    kinds = set(re.findall(rf'"({cloud}:[a-zA-Z0-9]+/[a-zA-Z0-9]+:\w+)', table))
    assert len(kinds) > 40
    left = {kind for kind in kinds if imports([row(kind, "projects/x")], "s").left}
    assert {kind for kind in kinds - OF_TERRAFORM if not documented(kind)} <= left


def test_the_plan_names_what_refuses_and_what_survives_a_destroy() -> None:
    rows = json.loads(json.dumps(recorded("dev-aws")["resources"]))
    bucket = next(
        row
        for row in rows
        if row["urn"].endswith("storage-checkpoints") and row["type"] == "aws:s3/bucket:Bucket"
    )
    cluster = next(row for row in rows if row["type"] == "aws:rds/cluster:Cluster")
    bucket["retainOnDelete"] = True
    cluster["protect"] = True
    plan = exit_plan.document(rows, "dev-aws", imports(rows, "dev-aws"))
    assert [one["path"] for one in plan["destroy_refused_by"]] == ["dev-aws-tracking-mlflow.protect"]
    assert "storage-checkpoints" in {one["name"] for one in plan["survives"]}
    assert "storage-checkpoints" not in {one["name"] for one in plan["data_deleted"]}
    assert {"storage-datasets", "storage-lustre", "tracking-mlflow"} <= {
        one["name"] for one in plan["data_deleted"]
    }


SECRETS = (
    "AKIAIOSFODNN7EXAMPLE",
    "-----BEGIN RSA PRIVATE KEY-----",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB",
    "pul-0123456789abcdef0123456789abcdef01234567",
    "https://user:hunter22@example.com/x",
    "v1:AAAAAAAAAAAAAAA=:abcdefghijklmnopqrstuvwxyz",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_anywhere_stops_it(secret: str) -> None:
    rows = json.loads(json.dumps(recorded("dev-aws")["resources"]))
    cluster = next(row for row in rows if row["type"] == "aws:eks/cluster:Cluster")
    for part in ("inputs", "outputs"):
        cluster[part] = {**cluster.get(part, {}), "tags": {"owner": secret}}
    files = bundle("acme", [(dataclasses.replace(facts("dev-aws"), resources=rows), {})])
    found = [*scan.secrets(files, {})]
    assert {one.code for one in found} == {"handover-secret"}
    assert any(one.path.startswith("dev-aws/inventory.csv:") for one in found)
    assert all(secret not in str(one) for one in found)


def test_values_of_the_shell_are_secrets_and_our_own_files_have_none() -> None:
    assert [*scan.secrets(made(), {"PULUMI_CONFIG_PASSPHRASE": "correct horse battery"})] == []
    (first, *_) = scan.secrets(
        {"a": b"x\ncorrect horse battery"}, {"PULUMI_CONFIG_PASSPHRASE": "correct horse battery"}
    )
    assert first.path == "a:2"


def test_names_of_other_clients_come_from_folders_and_from_the_fleet(tmp_path: Path) -> None:
    for name in ("acme", "globex"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Pulumi.yaml").write_text(f"name: {name}\nmain: {PROGRAM}\n")
    (tmp_path / "notes").mkdir()
    assert names_of_others(tmp_path / "acme", None) == {"globex"}
    (tmp_path / "fleet.yaml").write_text(
        "format: 1\nclients:\n  - name: acme\n  - name: initech\n    folder: ../elsewhere\n"
    )
    others = names_of_others(tmp_path / "acme", None)
    assert others == {"globex", "initech"}
    files: dict[str, Any] = {
        "a.md": b"the same as for\nInitech last year",
        "globex/b.md": b"",
        "c.md": b"globexian",
    }
    assert [(one.path, one.value) for one in scan.names(files, others)] == [
        ("a.md:2", "initech"),
        ("globex/b.md", "globex"),
    ]


def test_a_checkout_needs_a_stack_and_a_folder_must_be_a_client_s(tmp_path: Path) -> None:
    for words, code in (
        (("handover",), "stack-not-chosen"),
        (("handover", str(tmp_path)), "client-folder-missing"),
    ):
        with pytest.raises(UserError) as error:
            run(*words)
        assert [one for one, _ in error.value.codes] == [code]


def test_a_stack_that_was_never_deployed_is_handed_over_with_its_gaps() -> None:
    files = bundle("acme", [(given.absent("dev-aws"), {})])
    assert "dev-aws/outputs.json" not in files
    assert json.loads(files["dev-aws/exit/plan.json"])["resources"] == 0
    assert "evidence/" not in listed(files) and "outputs.json" not in listed(files)


def test_a_bundle_says_nothing_of_what_exists_without_the_state() -> None:
    files = bundle("acme", [(given.unread("dev-aws"), {}), (facts("small-gcp"), {})])
    of_unread = {name.partition("/")[2] for name in files if name.startswith("dev-aws/")}
    assert of_unread == {"report.html", "report.json", "settings.json"}
    assert given.unread("dev-aws").why.encode() in files["README.md"]
    assert "small-gcp/exit/README.md" in files


def test_a_plan_of_a_first_deployment_is_no_inventory() -> None:
    planned = dataclasses.replace(facts("dev-aws"), source="preview", outputs=None)
    files = bundle("acme", [(planned, {})])
    assert json.loads(files["dev-aws/exit/plan.json"])["resources"] == 0
    assert len(files["dev-aws/inventory.csv"].splitlines()) == 1


def listed(files: dict[str, bytes]) -> set[str]:
    """Files and folders that the first page names in its table."""
    rows = files["README.md"].decode().partition("| file of a stack |")[2]
    return set(re.findall(r"`([\w./]+)`", rows.partition("\n\n")[0]))


@pytest.mark.parametrize(
    "of",
    [
        [given.absent("dev-aws")],
        [given.unread("dev-aws")],
        [facts("dev-aws")],
        [facts("dev-aws"), given.absent("small-gcp")],
    ],
    ids=["absent", "unread", "deployed", "both"],
)
def test_the_first_page_lists_what_is_there_and_only_that(of: list[StackFacts]) -> None:
    files = bundle("acme", [(one, {"evidence.json": b"{}\n"} if one.outputs else {}) for one in of])
    text = files["README.md"].decode()
    there = {name.partition("/")[2] for name in files if name.partition("/")[0] in STACKS}
    assert listed(files) == {f"{one.partition('/')[0]}/" if "/" in one else one for one in there}
    for folder in ("runbooks/", "guides/"):
        assert (f"`{folder}`" in text) == any(name.startswith(folder) for name in files)
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert link in files
