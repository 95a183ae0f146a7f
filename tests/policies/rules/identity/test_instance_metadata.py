"""Metadata services of machines, by their own settings, a launch template, or defaults of the account."""

from typing import Any

import pytest

from policies.resource import Resource
from tests.policies.rules.identity.test_identity import made
from tests.policies.rules.kubernetes.test_pods import judge

TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
TIGHT = {"httpTokens": "required", "httpPutResponseHopLimit": 1}


def started_from(own: Any = None, **template: str) -> Resource:
    """An instance of a launch template, with metadata options of its own."""
    return made("aws:ec2/instance:Instance", launchTemplate=template, metadataOptions=own)


DEFAULTS = made("aws:ec2/instanceMetadataDefaults:InstanceMetadataDefaults", "usual", **TIGHT)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([made(TEMPLATE)], "fail"),
        ([made(TEMPLATE), DEFAULTS], "pass"),
        ([made(TEMPLATE, metadataOptions={"httpTokens": "optional"}), DEFAULTS], "fail"),
        ([made(TEMPLATE, metadataOptions={"httpTokens": "required"})], "fail"),
        ([made("aws:ec2/instance:Instance", metadataOptions=TIGHT)], "pass"),
        # What an instance does not set is that of its launch template (cloudsploit#1797).
        ([started_from(id="lt"), made(TEMPLATE, "lt", metadataOptions=TIGHT)], "pass"),
        ([started_from(name="lt", version="$Latest"), made(TEMPLATE, "lt", metadataOptions=TIGHT)], "pass"),
        ([started_from(id="lt", version="1"), made(TEMPLATE, "lt", metadataOptions=TIGHT)], "pass"),
        (
            [
                started_from(id="lt", version="1"),
                made(TEMPLATE, "lt", metadataOptions=TIGHT, latestVersion=2, defaultVersion=1),
            ],
            "undetermined",
        ),
        (
            [
                started_from(id="lt"),
                made(TEMPLATE, "lt", metadataOptions=TIGHT, latestVersion=2, defaultVersion=1),
            ],
            "undetermined",
        ),
        (
            [
                started_from(id="lt"),
                made(TEMPLATE, "lt", metadataOptions=TIGHT, latestVersion=2, defaultVersion=2),
            ],
            "pass",
        ),
        ([started_from(id="lt"), made(TEMPLATE, "lt")], "fail"),
        (
            [
                started_from({"httpTokens": "optional"}, id="lt"),
                made(TEMPLATE, "lt", metadataOptions=TIGHT),
            ],
            "fail",
        ),
        ([started_from(TIGHT, id="lt-elsewhere")], "pass"),
        ([started_from(id="lt-elsewhere")], "undetermined"),
        ([made(TEMPLATE, metadataOptions={"httpEndpoint": "disabled"})], "not-applicable"),
    ],
)
def test_metadata(resources: list[Resource], expected: str) -> None:
    found = judge("MLS-IAM-05", *resources)
    assert {one.result for one in found if one.resource is resources[0]} == {expected}
