"""The document of a report: what a reader learns of a stack, from recorded states."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from infra import cost
from infra.engine.golang import ROOT
from infra.stackspec import load_file
from infra.stackspec.load import stacks
from tests.trainstack.dossier import given
from tests.trainstack.dossier.given import AT, STACKS, facts
from trainstack.dossier.architecture.layers import layers
from trainstack.dossier.architecture.parts import is_counted
from trainstack.dossier.document import document
from trainstack.dossier.html.page import page
from trainstack.dossier.money import tier_of


def made(stack: str) -> dict[str, Any]:
    return document(facts(stack))


def test_each_component_of_the_product_is_in_one_layer() -> None:
    classes = set[str]()
    for path in (ROOT / "components").rglob("*.py"):
        classes |= set(re.findall(r"^class (\w+)\(Component\b", path.read_text(), re.MULTILINE))
    listed = [name for row in layers().rows for name in row.components]
    assert sorted(listed) == sorted(set(listed))
    assert classes == set(listed)
    assert layers().split <= classes


@pytest.mark.parametrize("stack", STACKS)
def test_every_resource_is_in_one_part(stack: str) -> None:
    architecture = made(stack)["architecture"]
    rows = [row for row in facts(stack).resources if is_counted(row)]
    assert architecture["resources"] == len(rows)
    assert sum(part["resources"] for layer in architecture["layers"] for part in layer["parts"]) == len(rows)
    assert architecture["parts"] < 50, "a drawing, not a list"


def test_rights_on_data_are_those_of_the_policies() -> None:
    reach = {one["who"]: one["stores"] for one in made("dev-aws")["architecture"]["identities"]}
    assert reach["pods team-vision/default"] == [
        {"store": "storage-checkpoints", "rights": ["read", "write", "delete"], "folders": ["teams/vision"]},
        {"store": "storage-datasets", "rights": ["read"], "folders": ["shared", "teams/vision"]},
    ]
    assert {one["store"] for one in reach["pods trainstack-schema/schema"]} == {
        "tracking-mlflow",
        "tracking-mlflow-admin",
    }
    google = {one["who"]: one["stores"] for one in made("small-gcp")["architecture"]["identities"]}
    assert {"store": "storage-datasets", "rights": ["read"], "folders": ["shared", "teams/vision"]} in google[
        "user ada@example.com"
    ]


def test_openings_name_who_can_come_in() -> None:
    aws = made("dev-aws")["architecture"]["openings"]
    api = next(one for one in aws if one["direction"] == "in")
    assert (api["part"], api["peers"], api["open_to_all"]) == ("cluster", ["198.51.100.0/24"], False)
    assert [one["direction"] for one in aws] == ["in", "out"]
    kept = {one["name"]: one for one in made("dev-aws")["architecture"]["stores"]}
    assert kept["storage-checkpoints"]["own_key"] is True
    assert kept["tracking-mlflow"]["reached_from"] == ["nodes of the cluster"]


def test_an_open_cluster_and_a_public_bucket_are_seen() -> None:
    rows = json.loads(json.dumps(given.recorded("dev-aws")["resources"]))
    cluster = next(row for row in rows if row["type"] == "aws:eks/cluster:Cluster")
    for part in ("inputs", "outputs"):
        cluster.get(part, {}).get("vpcConfig", {}).pop("publicAccessCidrs", None)
    stack = rows[0]["urn"].partition("::pulumi:pulumi:Stack")[0]
    member = {
        "urn": f"{stack}::gcp:storage/bucketIAMMember:BucketIAMMember::leak",
        "type": "gcp:storage/bucketIAMMember:BucketIAMMember",
        "custom": True,
        "inputs": {"bucket": "x", "member": "allUsers", "role": "roles/storage.objectViewer"},
    }
    opened = document(dataclasses.replace(facts("dev-aws"), resources=[*rows, member]))["architecture"][
        "openings"
    ]
    assert {one["part"] for one in opened if one["open_to_all"] and one["direction"] == "in"} == {
        "cluster",
        "leak",
    }


@pytest.mark.parametrize("stack", stacks())
def test_tiers_have_every_item_and_add_up(stack: str) -> None:
    spec = load_file(stack).spec
    items = cost.estimate(spec, AT.date()).known
    assert all(tier_of(item.name) != "other" for item in items), [
        i.name for i in items if tier_of(i.name) == "other"
    ]
    found = document(dataclasses.replace(given.absent("dev-aws"), stack=stack, loaded=load_file(stack)))[
        "cost"
    ]
    for name in ("minimum_usd", "expected_usd", "maximum_usd"):
        assert sum(tier[name] for tier in found["tiers"]) == pytest.approx(found[name])


def test_the_validation_is_the_result_of_the_run() -> None:
    pool = made("dev-aws")["validation"]["pools"][0]
    result = given.recorded("dev-aws")["result"]
    checks = {one["id"]: one for one in result["checks"]}
    assert pool["state"] == "passed"
    assert pool["result"]["scaling"]["value"] == checks["training.scaling_efficiency"]["measured"]["value"]
    assert [one["rank"] for one in pool["result"]["ranks_steps"]] == [0, 1]
    assert {one["collective"] for one in pool["result"]["bandwidth"]} == {
        "all-reduce",
        "all-gather",
        "reduce-scatter",
        "all-to-all",
    }
    assert all(one["references"] or one["no_reference"] for one in pool["result"]["bandwidth"])
    assert {"pool l4", "pool cpu", "cloud"} <= {one["subject"] for one in made("dev-aws")["untested"]}


def test_a_result_that_is_damaged_is_a_gap() -> None:
    damaged = dataclasses.replace(facts("dev-aws").results[0], result={"cluster": {}, "checks": [{}]})
    found = document(dataclasses.replace(facts("dev-aws"), results=[damaged]))["validation"]["pools"][0]
    assert found["result"] is None
    assert found["read_error"]


def test_waivers_have_their_days() -> None:
    (waiver,) = made("dev-aws")["policy"]["waivers"]
    assert (waiver["until"], waiver["days_left"], waiver["valid"]) == ("2026-12-10", 12, True)


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_without_anything_still_has_a_report(stack: str) -> None:
    found = document(given.absent(stack))
    assert (found["state"], found["validation"]["verdict"], found["policy"]["known"]) == (
        "absent",
        "never",
        False,
    )
    assert found["cost"]["known"]
    assert found["state_why"] in page(found)


@pytest.mark.parametrize("stack", STACKS)
def test_a_state_that_was_not_read_is_unknown_with_its_reason(stack: str) -> None:
    found = document(given.unread(stack))
    assert (found["state"], found["validation"]["verdict"]) == ("unknown", "unknown")
    assert {one["state"] for one in found["validation"]["pools"]} == {"unknown"}
    assert found["state_why"] == given.unread(stack).why
    summary = page(found).partition('id="architecture"')[0]
    assert found["state_why"] in summary
    assert "Not deployed" not in page(found) and "Never run" not in page(found)


def test_a_stack_that_its_backend_lacks_is_absent() -> None:
    assert document(given.unread("dev-aws", "stack-not-found"))["state"] == "absent"


def test_a_broken_spec_costs_no_more_than_its_parts() -> None:
    found = document(dataclasses.replace(facts("dev-aws"), loaded=None))
    assert found["about"] is None
    assert not found["cost"]["known"]
    assert found["architecture"]["resources"]
    page(found)


def test_the_same_facts_give_the_same_bytes() -> None:
    facts.cache_clear()
    first = page(made("dev-aws"))
    facts.cache_clear()
    assert page(made("dev-aws")) == first
    turned = dataclasses.replace(facts("dev-aws"), resources=[*reversed(facts("dev-aws").resources)])
    assert json.dumps(document(turned)["architecture"]) == json.dumps(made("dev-aws")["architecture"])


def test_no_secret_of_a_state_is_in_the_report(tmp_path: Path) -> None:
    rows = json.loads(json.dumps(given.recorded("dev-aws")["resources"]))
    secret = {
        "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
        "plaintext": '"canary-5d1"',
    }
    for row in rows:
        for part in ("inputs", "outputs"):
            if part in row:
                row[part] |= {
                    "password": secret,
                    "arn": secret,
                    "vpcConfig": secret,
                    "policy": secret,
                    "bucket": secret,
                }
    assert "canary-5d1" not in json.dumps(document(dataclasses.replace(facts("dev-aws"), resources=rows)))
