"""The bundle of a handover: contents, checksums, the way out, and what keeps it from being written."""

import csv
import dataclasses
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from infra.places import PROGRAM
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
        "c.md": b"globexMl-bucket",
        "d.md": b"at uba and tubas, hp",
    }
    assert [(one.path, one.value) for one in scan.names(files, {*others, "tuba", "hp"})] == [
        ("a.md:2", "initech"),
        ("c.md:1", "globex"),
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
