"""Examples in the form of each peer, from the file to the verdict; subjects and arguments as data."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.peers import agreement, checkouts
from benchmarks.peers.conversion import Schema, types
from policies.rules import CATALOG
from rehearsal.core.schema import Schemas
from tests.rehearsal.driver import CACHE

_MODULE = """
resource "aws_security_group_rule" "wide" {
  type        = "ingress"
  protocol    = "tcp"
  from_port   = "20"
  to_port     = 30
  cidr_blocks = [local.everywhere]
}

resource "aws_security_group_rule" "narrow" {
  type        = "ingress"
  protocol    = "tcp"
  from_port   = 22
  to_port     = 22
  cidr_blocks = ["10.0.0.0/8"]
}

locals { everywhere = "0.0.0.0/0" }
"""
_TEST = """
from checkov.terraform.checks.resource.aws.Port import check
from pathlib import Path

def test() -> None:
    test_files_dir = Path(__file__).parent / "example_Port"
    passing_resources = {"aws_security_group_rule.narrow"}
    failing_resources = {"aws_security_group_rule.wide", "aws_security_group_rule.made_by_a_module"}

def test_parsed(self) -> None:
    resource_conf = {"type": ["ingress"], "protocol": ["-1"], "cidr_blocks": [["::/0"]], "timeouts": [{}]}
    self.assertEqual(CheckResult.FAILED, check.scan_resource_conf(conf=resource_conf))

def test_text(self) -> None:
    read = hcl2.loads('resource "aws_security_group_rule" "none" {}')
    scan_result = check.scan_resource_conf(conf=read["resource"][0]["aws_security_group_rule"]["none"])
    self.assertEqual(CheckResult.PASSED, scan_result)
"""
_METADATA = {
    "terraform": {
        "good": ['resource "aws_ecr_repository" "a" {\n  image_tag_mutability = "IMMUTABLE"\n}'],
        "bad": ['resource "aws_ecr_repository" "a" {}'],
    }
}
FILES = {
    "checkov": {
        "checkov/terraform/checks/resource/aws/Port.py": (
            'id = "CKV_AWS_24"\nsupported_resources = ["aws_security_group_rule"]'
        ),
        "checkov/terraform/checks/graph_checks/aws/None.yaml": "metadata: {id: CKV2_AWS_0}",
        "tests/terraform/checks/resource/aws/test_Port.py": _TEST,
        "tests/terraform/checks/resource/aws/example_Port/main.tf": _MODULE,
        "tests/terraform/graph/checks/resources/None/main.tf": "",
    },
    "trivy": {
        "checks/cloud/aws/ecr/tags.yaml": json.dumps(_METADATA),
        "checks/cloud/aws/ecr/tags.rego": "# custom:\n#   id: AWS-0031\n",
    },
}


@pytest.fixture(scope="module")
def schema() -> Iterator[Schema]:
    schemas = Schemas("aws", CACHE)
    yield schemas.resource
    schemas.close()


def _checkout(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "a")):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return folder


def test_examples_are_read_converted_and_compared(tmp_path: Path, schema: Schema) -> None:
    examples = [
        *checkouts.checkov(_checkout(tmp_path / "checkov", FILES["checkov"])),
        *checkouts.trivy(_checkout(tmp_path / "trivy", FILES["trivy"])),
    ]
    rows = agreement.compare(examples, schema)
    assert [(row.example.check, row.example.resource, row.example.verdict, row.ours) for row in rows] == [
        ("CKV_AWS_24", "aws_security_group_rule.narrow", "pass", "pass"),
        ("CKV_AWS_24", "aws_security_group_rule.made_by_a_module", "fail", "unreadable"),
        ("CKV_AWS_24", "aws_security_group_rule.wide", "fail", "fail"),
        ("CKV_AWS_24", "aws_security_group_rule.none", "pass", "pass"),
        ("CKV_AWS_24", "aws_security_group_rule.one", "fail", "fail"),
        ("AWS-0031", "", "pass", "pass"),
        ("AWS-0031", "", "fail", "fail"),
    ]


def test_subjects_and_arguments_name_rules_and_checks_that_exist() -> None:
    subjects = agreement.subjects()
    assert {one.rule for one in subjects.values()} <= set(CATALOG.rules)
    rows = agreement.arguments()
    keys = [(one.peer, one.check, one.example, name, one.ours) for one in rows for name in one.resources]
    assert len(keys) == len(set(keys))
    for one in rows:
        assert (one.peer, one.check) in subjects, one
        assert one.right in agreement.RIGHT and one.why and one.source, one
        assert one.ours in ("pass", "fail", "undetermined", "not-applicable", "unreadable"), one


def test_where_a_peer_is_right_the_rule_is_fixed() -> None:
    assert [one for one in agreement.arguments() if one.right == "peer"] == []


def test_the_table_counts_who_is_right_and_unused_arguments_are_stale() -> None:
    argument = next(one for one in agreement.arguments() if one.right == "scope")
    example = checkouts.Example(argument.peer, argument.check, "aws", argument.example, (), "a.b", "pass")
    rows = [
        agreement.Compared(example, "pass", ""),
        agreement.Compared(example, argument.ours, "", argument),
        agreement.Compared(example, "undetermined", ""),
    ]
    last = agreement.table(rows, {}, {}).splitlines()[-1]
    assert last == "| all |  | 3 | 1 | 0 | 0 | 1 | 1 | 50.0 % |"
    stale = agreement.unused(rows, (argument.peer,))
    assert (argument in stale) == (len(argument.resources) > 1)
    assert len(stale) >= sum(one.peer == argument.peer for one in agreement.arguments()) - 1


def test_the_rules_judge_kinds_that_are_converted() -> None:
    converted = set(types().values())
    for subject in agreement.subjects().values():
        assert converted & set(CATALOG.rules[subject.rule].kinds), subject
