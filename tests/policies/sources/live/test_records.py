"""Conversion of answers to resources: types, versions and exclusions."""

from collections.abc import Mapping
from typing import Any

import pytest

from policies.evaluate import evaluate
from policies.resource import UndeterminedError
from policies.rules import CATALOG
from policies.rules.pools import template_of
from policies.sources.live.join import joined
from policies.sources.live.queries import AnswerItem, Answers, ApiRefusal
from policies.sources.live.records import LiveAccount, account
from policies.sources.live.snapshot import Snapshot
from policies.sources.live.tables import tables
from policies.stack import Stack

TEMPLATE, GROUP = "aws:ec2/launchTemplate:LaunchTemplate", "aws:eks/nodeGroup:NodeGroup"
LATEST = "ec2.DescribeLaunchTemplateVersions"


def answered(said: Mapping[str, Answers]) -> LiveAccount:
    answers = {**dict.fromkeys(tables("aws").queries, Answers()), **said}
    return account(Snapshot("aws", "123456789012", "us-east-1", "2026-11-23T00:00:00Z", answers))


def version(number: int, tokens: str) -> dict[str, Any]:
    options = {"HttpTokens": tokens, "HttpPutResponseHopLimit": 1}
    data = {"InstanceType": "p5.48xlarge", "MetadataOptions": options}
    named = {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "gpu", "VersionNumber": number}
    return {**named, "LaunchTemplateData": data}


def answers(*running: int) -> dict[str, Answers]:
    """A template of three versions, the last of which is right, and a node group of each of these."""
    template = {
        "LaunchTemplateId": "lt-1", "LaunchTemplateName": "gpu", "LatestVersionNumber": 3,
        "Tags": [{"Key": "trainstack:stack", "Value": "dev"}],
    }  # fmt: skip
    groups = [
        {"clusterName": "dev", "nodegroupName": f"pool{index}",
         "launchTemplate": {"id": "lt-1", "name": "gpu", "version": f"{number}"}}
        for index, number in enumerate(running)
    ]  # fmt: skip
    versions = [version(number, "required" if number == 3 else "optional") for number in running]
    return {
        "ec2.DescribeLaunchTemplates": Answers((AnswerItem(template),)),
        LATEST: Answers((AnswerItem(version(3, "required"), {"LaunchTemplateId": "lt-1"}),)),
        "eks.DescribeNodegroup": Answers(
            tuple(
                AnswerItem(one, {"clusterName": "dev", "nodegroupName": one["nodegroupName"]})
                for one in groups
            )
        ),
        f"{LATEST}/running": Answers(
            tuple(
                AnswerItem(one, {"LaunchTemplateId": "lt-1", "Versions": [f"{number}"]})
                for one, number in zip(versions, running, strict=True)
            )
        ),
    }


def templates(reported: LiveAccount) -> list[str]:
    return [one.id for one in reported.resources if one.kind == TEMPLATE]


def test_nodes_are_judged_by_the_version_that_they_have() -> None:
    reported = answered(answers(2, 3, 2))
    assert templates(reported) == ["lt-1", "lt-1:2"]
    stack = Stack(reported.resources, None, reported.coverage)
    found = [template_of(one, stack) for one in stack.all(GROUP)]
    assert [one and one.id for one in found] == ["lt-1:2", "lt-1", "lt-1:2"]
    outcomes = evaluate(stack, [CATALOG.rules["MLS-IAM-05"]])
    results = {(one.resource.kind, one.resource.id): one.result for one in outcomes if one.resource}
    assert results[TEMPLATE, "lt-1"] == "pass"
    assert results[TEMPLATE, "lt-1:2"] == "fail"


def test_a_version_that_runs_is_not_unmanaged_besides_its_template() -> None:
    reported = answered(answers(2))
    assert {one.resource.id for one in joined([], reported).differences} == {"lt-1"}


def test_where_versions_were_refused_nodes_are_not_judged_by_another() -> None:
    refused = ApiRefusal("UnauthorizedOperation", "", LATEST, {"LaunchTemplateId": "lt-1", "Versions": ["2"]})
    reported = answered({**answers(2), f"{LATEST}/running": Answers((), (refused,))})
    assert templates(reported) == ["lt-1"]
    stack = Stack(reported.resources, None, reported.coverage)
    with pytest.raises(UndeterminedError, match=LATEST):
        template_of(stack.all(GROUP)[0], stack)


def test_what_a_service_keeps_for_itself_is_left_out() -> None:
    """The login that RDS makes for a database, which RDS alone may tag and change."""
    question = "secretsmanager.DescribeSecret"
    own = {"ARN": "arn:own", "Name": "own"}
    kept = {"ARN": "arn:rds", "Name": "rds!cluster-1", "OwningService": "rds"}
    reported = answered(
        {question: Answers(tuple(AnswerItem(one, {"SecretId": one["ARN"]}) for one in (own, kept)))}
    )
    assert [one.id for one in reported.resources] == ["arn:own"]
