"""Columns of tables: paths that a list covers, types that block a deletion, types that functions read."""

from pathlib import Path

import pytest

from rehearsal.core.emulation.columns import blocked, by_type, covers, read_by
from rehearsal.core.properties import without_indices


@pytest.mark.parametrize(
    ("entries", "path", "covered"),
    [
        (("vpcId",), "vpcId", True),
        (("vpcId",), "vpcIds", False),
        (("rules.port",), "rules[3].port", True),
        (("tags",), 'tags["a.b"]', True),
        (("*",), "anything[0].at.all", True),
        (("*", "-tags"), "tags.owner", False),
        (("*", "-config", "config.zone"), "config.zone", True),
        (("*", "-config", "config.zone"), "config.labels", False),
        (("config", "-config.labels"), "config.labels.team", False),
        ((), "vpcId", False),
    ],
)
def test_the_deepest_entry_decides(entries: tuple[str, ...], path: str, covered: bool) -> None:
    assert covers(entries, path) is covered


def test_paths_lose_their_indices() -> None:
    assert without_indices("a[0].b[12].c") == "a.b.c"


def test_some_references_block_a_deletion() -> None:
    row = {"code": "InUse", "message": "in use", "by": ["*"], "except": ["iam/a:A"], "own": ["path"]}
    refusal = blocked("aws", row)
    assert refusal.holds("aws:ec2/b:B", "vpcId")
    assert not refusal.holds("aws:iam/a:A", "vpcId") and not refusal.holds("aws:ec2/b:B", "path")
    named = blocked("aws", {"code": "InUse", "message": "in use", "by": ["ec2/b:B"]})
    assert named.holds("aws:ec2/b:B", "x") and not named.holds("aws:ec2/c:C", "x")


def test_only_tables_are_rows(tmp_path: Path) -> None:
    (tmp_path / "ec2.toml").write_text('source = "a page"\n["ec2/vpc:Vpc"]\nid = "vpc-{hex17}"\n')
    assert dict(by_type(tmp_path, "aws")) == {"aws:ec2/vpc:Vpc": {"id": "vpc-{hex17}"}}


@pytest.mark.parametrize(
    ("function", "type"),
    [
        ("aws:ec2/getVpc:getVpc", "aws:ec2/vpc:Vpc"),
        ("aws:rds/getVpc:getVpc", None),
        ("aws:ec2/vpc:Vpc", None),
        ("aws:ec2/getVpcs:getVpcs", None),
    ],
)
def test_a_function_reads_the_type_of_its_name(function: str, type: str | None) -> None:
    assert read_by(function, ["aws:ec2/subnet:Subnet", "aws:ec2/vpc:Vpc"]) == type
