"""A state against an emulated account: missing, drifted and unmanaged resources."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from infra.errors import UserError
from policies.evaluate import evaluate
from policies.resource import Resource, UnknownValue
from policies.rules import CATALOG
from policies.sources.live import snapshot
from policies.sources.live.join import joined
from policies.sources.live.records import LiveAccount, account
from policies.stack import Stack
from tests.policies.problems import rejected
from tests.trainstack.cli.command import checked
from tests.trainstack.collect.cloud import REGION, Account, denied, emulated
from trainstack.cli.app import app
from trainstack.collect.aws.account import collect

VOLUME, BUCKET = "aws:ebs/volume:Volume", "aws:s3/bucket:Bucket"
TAG = {"trainstack:stack": "dev"}
ASKED: dict[str, Any] = {"size": 10, "encrypted": True, "availabilityZone": "us-east-1a"}


def managed(id: str, kind: str = VOLUME, **asked: Any) -> Resource:
    """One of a state, which asked for these properties."""
    return Resource(
        kind, f"urn:pulumi:dev::app::{kind}::{id}", id, id=id, region=REGION, account="123456789012",
        props=asked, asked=asked, tags=TAG,
    )  # fmt: skip


@pytest.fixture
def service() -> Iterator[Callable[[str], Any]]:
    with emulated() as made:
        yield made


def volume(service: Any, tags: dict[str, str], **asked: Any) -> str:
    rows = [{"Key": key, "Value": value} for key, value in tags.items()]
    given = {"Size": 10, "AvailabilityZone": "us-east-1a", "Encrypted": True, **asked}
    specification = {"TagSpecifications": [{"ResourceType": "volume", "Tags": rows}]} if rows else {}
    return str(service("ec2").create_volume(**given, **specification)["VolumeId"])


def asked(said: Any = None) -> LiveAccount:
    return account(collect(REGION, Account(said)))


def test_a_state_as_its_account_is_has_no_difference(service: Any) -> None:
    found = joined([managed(volume(service, TAG), **ASKED)], asked())
    assert not found.differences


def test_each_difference_is_reported_once(service: Any) -> None:
    drifted = volume(service, TAG, Size=20)
    forgotten = volume(service, TAG)
    volume(service, {"trainstack:stack": "other"})
    volume(service, {**TAG, "kubernetes.io/created-for/pvc/name": "data"})
    volume(service, {})
    found = joined([managed(drifted, **ASKED), managed("vol-gone", **ASKED)], asked())
    assert [(one.what, one.resource.id, one.path) for one in found.differences] == [
        ("missing", "vol-gone", ""),
        ("drifted", drifted, "size"),
        ("unmanaged", forgotten, ""),
    ]
    assert re.findall(r"\d+", found.differences[1].message) == ["20", "10"]
    assert json.loads(found.import_file()) == {
        "resources": [{"type": VOLUME, "name": forgotten, "id": forgotten}]
    }


def test_what_could_not_be_read_or_asked_is_not_missing(service: Any) -> None:
    elsewhere = replace(managed("vol-2", **ASKED), region="eu-west-1")
    reported = asked({"ec2.DescribeVolumes": denied})
    never_made = replace(managed("", **ASKED), id=UnknownValue("id", "is not known before it exists"))
    assert not joined([never_made], asked()).differences
    state = [managed("vol-1", **ASKED), elsewhere, managed("x", "aws:route53/zone:Zone", name="x")]
    assert not joined(state, reported).differences


def test_the_program_completes_the_account(service: Any) -> None:
    """Alone, an account leaves open whether a bucket of production is hard to delete."""
    service("s3").create_bucket(Bucket="train-data")
    rule, reported = CATALOG.rules["MLS-STO-10"], asked()
    (alone,) = evaluate(Stack(reported.resources, None, reported.coverage), [rule])
    assert alone.result == "undetermined"
    state = [managed("train-data", BUCKET, bucket="train-data", forceDestroy=True)]
    both = joined(state, reported)
    (known,) = evaluate(Stack(both.resources, None, reported.coverage), [rule])
    assert (known.result, known.path) == ("fail", "forceDestroy")
    assert known.resource is not None
    assert known.resource.urn == state[0].urn


def test_the_command_joins_and_writes_an_import_file(service: Any, tmp_path: Path) -> None:
    forgotten = volume(service, TAG)
    row = {
        "urn": f"urn:pulumi:dev::app::{BUCKET}::data", "type": BUCKET, "custom": True, "id": "train-data",
        "outputs": {"bucket": "train-data", "region": REGION, "tagsAll": TAG},
    }  # fmt: skip
    state, collected, imports = (tmp_path / name for name in ("state.json", "snapshot.json", "import.json"))
    state.write_text(json.dumps({"version": 3, "deployment": {"resources": [row]}}))
    snapshot.write(collect(REGION, Account()), collected)
    words = ["audit", "--state", str(state), "--snapshot", str(collected), "--import-file", str(imports)]
    reported = checked(CliRunner().invoke(app, [*words, "--format", "json"]).output)
    assert [(one["what"], one["id"]) for one in reported["differences"]] == [
        ("missing", "train-data"),
        ("unmanaged", forgotten),
    ]
    assert [one["id"] for one in json.loads(imports.read_text())["resources"]] == [forgotten]
    assert imports.stat().st_mode & 0o777 == 0o600
    assert "unmanaged" in CliRunner().invoke(app, words).output
    refused = CliRunner().invoke(app, [*words[:-1], str(tmp_path / "none" / "import.json")]).exception
    assert isinstance(refused, UserError) and refused.problems[0].code == "output-file-unwritable"


def test_a_state_of_another_account_is_refused(service: Any) -> None:
    other = replace(managed("vol-1", **ASKED), account="999999999999")
    with rejected("state-of-other-account"):
        joined([other], asked())
