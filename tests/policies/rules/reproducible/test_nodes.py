"""MLS-REP-03 on what is configured in other ways than in its example."""

from dataclasses import replace
from typing import Any

import pytest

from policies.resource import PartlyKnown, Resource, UnknownValue
from tests.policies.rules.judging import judged, made

CLUSTER, GROUP = "aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


def asked(kind: str, **props: Any) -> Resource:
    """With what the cloud would answer besides."""
    answer = {"version": "1.35", "releaseVersion": "1.35.6-20260714", "imageId": ""}
    return replace(made(kind, **{**answer, **props}), asked=props)


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        (asked(CLUSTER), "fail version"),
        (asked(CLUSTER, version="1.35"), "pass"),
        (asked(GROUP, amiType="CUSTOM"), "pass"),
        (asked(GROUP, amiType="AL2023_x86_64_NVIDIA"), "fail releaseVersion"),
        (
            asked(GROUP, amiType="CUSTOM", launchTemplate={"id": "lt", "version": "$Latest"}),
            "fail launchTemplate.version",
        ),
        (asked(TEMPLATE), "not-applicable"),
        (asked(TEMPLATE, imageId="ami-0123456789abcdef0"), "pass"),
        (asked(TEMPLATE, imageId="resolve:ssm:/aws/service/eks/recommended"), "fail imageId"),
        (made(GROUP), "not-applicable"),
    ],
)
def test_what_nodes_run_is_named(resource: Resource, said: str) -> None:
    assert judged("MLS-REP-03", resource) == {"it": said}


def test_a_version_that_comes_from_a_template_is_a_number() -> None:
    later = UnknownValue("launchTemplate.version", "is not known before the deployment")
    group = asked(GROUP, amiType="CUSTOM", launchTemplate=PartlyKnown(id="lt", version=later))
    reported = replace(group, references={"launchTemplate": ["urn:lt"]})
    template = made(TEMPLATE, "lt")
    assert judged("MLS-REP-03", group, template)["it"] == "undetermined"
    assert judged("MLS-REP-03", reported, template)["it"] == "pass"
