"""The rules TAG on what is configured in other ways than in their examples."""

import importlib
import inspect
from typing import Any

import pytest

from policies.resource import Resource, UnknownValue
from policies.rules.tags.required_tags import TAGGED, plain
from tests.policies.rules.judging import judged, made

BUCKET, GROUP = "aws:s3/bucketV2:BucketV2", "aws:eks/nodeGroup:NodeGroup"
TEMPLATE, TAG = "aws:ec2/launchTemplate:LaunchTemplate", "aws:autoscaling/tag:Tag"
LUSTRE, DATABASE = "aws:fsx/lustreFileSystem:LustreFileSystem", "aws:rds/instance:Instance"
ALL = {
    "Owner": "ml@example.com",
    "CostCentre": "42",
    "environment": "Prod",
    "data_class": "restricted",
    "expires-on": "never",
}


@pytest.mark.parametrize("kind", TAGGED)
def test_what_has_to_be_tagged_can_be(kind: str) -> None:
    package, module, name = kind.split(":")
    found = getattr(importlib.import_module(f"pulumi_{package}.{module.split('/')[0]}"), name)
    takes = inspect.signature(found._internal_init).parameters
    assert {"tags", "labels", "resource_labels"} & takes.keys()


def test_names_of_tags_have_many_spellings() -> None:
    assert judged("MLS-TAG-01", made(BUCKET, tags=ALL)) == {"it": "pass"}
    assert plain("Cost Centre") == plain("cost_center") == plain("CostCenter")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"environment": "moon"}, "fail tags.environment"),
        ({"expires-on": "31.12.2027"}, "fail tags.expires-on"),
        ({"Owner": ""}, "fail tags.Owner"),
        ({"Owner": UnknownValue("tags.Owner", "is a secret")}, "undetermined"),
    ],
)
def test_values_have_a_form(changed: dict[str, Any], said: str) -> None:
    assert judged("MLS-TAG-01", made(BUCKET, tags={**ALL, **changed})) == {"it": said}


def test_a_team_says_which_tags_it_wants() -> None:
    assert judged("MLS-TAG-01", made(BUCKET), required_tags={}) == {"it": "pass"}
    assert judged("MLS-TAG-01", made(BUCKET), required_tags={"team": ".+"}) == {"it": "fail tags"}


def test_clusters_of_gke_have_labels_of_resources() -> None:
    gke = made("gcp:container/cluster:Cluster", resourceLabels=ALL)
    assert judged("MLS-TAG-01", gke) == {"it": "pass"}


def nodes(*tagged: str, tags: dict[str, str] | None = None) -> list[Resource]:
    rows = [{"resourceType": kind, "tags": {"owner": "me"}} for kind in tagged]
    groups = [{"autoscalingGroups": [{"name": "asg"}]}]
    template = made(TEMPLATE, "lt", tagSpecifications=rows)
    given = {"owner": "me", "Name": "x"} if tags is None else tags
    return [made(GROUP, tags=given, launchTemplate={"id": "lt"}, resources=groups), template]


def propagated(value: str = "me", at_launch: bool = True, group: Any = "asg") -> Resource:
    tag = {"key": "owner", "value": value, "propagateAtLaunch": at_launch}
    return made(TAG, "t", autoscalingGroupName=group, tag=tag)


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        (nodes("instance", "volume"), "pass"),
        (nodes("volume"), "fail tags"),
        ([*nodes("volume"), propagated()], "pass"),
        ([*nodes("volume"), propagated("another")], "fail tags"),
        ([*nodes("volume"), propagated(at_launch=False)], "fail tags"),
        ([*nodes("volume"), propagated(group="another")], "fail tags"),
        (nodes("instance"), "fail tags"),
        (nodes("instance", "volume", tags={}), "not-applicable"),
        (nodes("instance", "volume")[:1], "undetermined"),
        ([made(GROUP, tags={"owner": "me"}, instanceTypes=["g6.xlarge"])], "fail tags"),
    ],
)
def test_nodes_and_their_volumes_get_a_tag_of_the_pool(resources: list[Resource], said: str) -> None:
    assert judged("MLS-TAG-02", *resources) == {"it": said}


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        (made(LUSTRE, automaticBackupRetentionDays=7), "fail copyTagsToBackups"),
        (made(LUSTRE, automaticBackupRetentionDays=7, copyTagsToBackups=True), "pass"),
        (made(LUSTRE, skipFinalBackup=False), "fail copyTagsToBackups"),
        (made(LUSTRE), "not-applicable"),
        (made(DATABASE, engine="postgres"), "fail copyTagsToSnapshot"),
        (made(DATABASE, engine="aurora-postgresql"), "not-applicable"),
    ],
)
def test_backups_get_tags_where_there_are_any(resource: Resource, said: str) -> None:
    assert judged("MLS-TAG-02", resource) == {"it": said}
