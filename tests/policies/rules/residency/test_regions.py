"""The rules RES on what is configured in other ways than in their examples."""

import importlib
from typing import Any

import pytest

from policies.resource import Resource, UnknownValue
from policies.rules import CATALOG
from policies.rules.residency.regions import region_of
from tests.policies.rules.judging import judged, made

BUCKET, SECRET = "aws:s3/bucket:Bucket", "aws:secretsmanager/secret:Secret"
STORED, GOOGLE_SECRET = "gcp:storage/bucket:Bucket", "gcp:secretmanager/secret:Secret"
KINDS = sorted({kind for number in ("01", "02") for kind in CATALOG.rules[f"MLS-RES-{number}"].kinds})
EUROPE = frozenset({"eu-west-1", "europe-west4"})


@pytest.mark.parametrize(
    ("place", "region"),
    [
        ("us-central1-a", "us-central1"),
        ("US-CENTRAL1", "us-central1"),
        ("us-east-1b", "us-east-1"),
        ("us-gov-west-1", "us-gov-west-1"),
        ("us-gov-west-1a", "us-gov-west-1"),
        ("northamerica-northeast1", "northamerica-northeast1"),
        ("EU", "eu"),
        ("https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a", "us-central1"),
    ],
)
def test_the_region_of_a_place(place: str, region: str) -> None:
    assert region_of(place) == region


@pytest.mark.parametrize(
    "kind", sorted({k for r in ("01", "02") for k in CATALOG.rules[f"MLS-RES-{r}"].kinds})
)
def test_every_kind_is_one_of_the_sdk(kind: str) -> None:
    package, module, name = kind.split(":")
    assert hasattr(importlib.import_module(f"pulumi_{package}.{module.split('/')[0]}"), name)


def test_a_stack_is_in_the_region_of_its_cluster_by_default() -> None:
    away, cluster = made(BUCKET, region="eu-west-1"), made("aws:eks/cluster:Cluster", "eks")
    assert judged("MLS-RES-01", away, cluster) == {"it": "fail region", "eks": "pass"}
    assert judged("MLS-RES-01", away, allowed_regions=EUROPE) == {"it": "pass"}
    assert judged("MLS-RES-01", away) == {"it": "not-applicable"}


@pytest.mark.parametrize(
    ("holder", "said"),
    [
        (made(BUCKET, region=""), "fail region"),
        (made(STORED, location="europe-west4"), "pass"),
        (made(STORED, location="EU"), "fail location"),
        (made(STORED, location="EU", customPlacementConfig={"dataLocations": ["EUROPE-WEST4"]}), "pass"),
        (made("gcp:compute/disk:Disk", zone="europe-west4-b"), "pass"),
        (made("gcp:kms/keyRing:KeyRing", location="global"), "fail location"),
        (made(STORED, location=UnknownValue("location", "?")), "undetermined"),
    ],
)
def test_places_of_holders(holder: Resource, said: str) -> None:
    assert judged("MLS-RES-01", holder, allowed_regions=EUROPE) == {"it": said}


def copies(kind: str, said: str, **props: Any) -> Any:
    return pytest.param(made(kind, **{"region": "eu-west-1", **props}), said, id=f"{kind} {said}")


_SINK, _PLAN = "gcp:logging/projectSink:ProjectSink", "aws:backup/plan:Plan"
_LOGS = "logging.googleapis.com/projects/p/locations"
_VAULT = "arn:aws:backup:{}:1:backup-vault:v"
_ECR = "aws:ecr/replicationConfiguration:ReplicationConfiguration"


@pytest.mark.parametrize(
    ("copied", "said"),
    [
        copies(SECRET, "not-applicable"),
        copies(SECRET, "pass", replicas=[{"region": "eu-west-1"}]),
        copies(SECRET, "fail replicas[0].region", replicas=[{"region": "us-east-1"}]),
        copies("aws:kms/replicaKey:ReplicaKey", "fail region", region="us-east-1"),
        copies(_PLAN, "pass", rules=[{"copyActions": [{"destinationVaultArn": _VAULT.format("eu-west-1")}]}]),
        copies(
            _PLAN,
            "fail rules[0].copyActions[0].destinationVaultArn",
            rules=[{"copyActions": [{"destinationVaultArn": _VAULT.format("us-east-1")}]}],
        ),
        copies(
            _ECR,
            "fail replicationConfiguration.rules[0].destinations[0].region",
            replicationConfiguration={"rules": [{"destinations": [{"region": "us-east-1"}]}]},
        ),
        copies(GOOGLE_SECRET, "fail replication.auto", replication={"auto": {}}),
        copies(
            GOOGLE_SECRET,
            "pass",
            replication={"userManaged": {"replicas": [{"location": "europe-west4"}]}},
        ),
        copies(_SINK, "pass", destination=f"{_LOGS}/europe-west4/buckets/b"),
        copies(
            _SINK,
            "fail destination",
            destination=f"{_LOGS}/global/buckets/_Default",
        ),
        copies(_SINK, "undetermined", destination="storage.googleapis.com/somewhere"),
        copies("aws:ec2/flowLog:FlowLog", "undetermined", logDestination="arn:aws:s3:::of-another-stack"),
        copies("aws:ec2/flowLog:FlowLog", "pass", logDestination="arn:aws:logs:eu-west-1:1:log-group:g"),
        copies(BUCKET, "not-applicable", replicationConfiguration={"rules": [{"status": "Disabled",
               "destination": {"bucket": "arn:aws:s3:::of-another-stack"}}]}),
    ],
)  # fmt: skip
def test_where_copies_go(copied: Resource, said: str) -> None:
    assert judged("MLS-RES-02", copied, allowed_regions=EUROPE) == {"it": said}


def test_a_bucket_is_looked_for_by_its_name_and_arn() -> None:
    bucket = made(BUCKET, "b", bucket="logs", arn="arn:aws:s3:::logs", region="us-east-1")
    trail = made("aws:cloudtrail/trail:Trail", s3BucketName="logs")
    flow = made("aws:ec2/flowLog:FlowLog", logDestination="arn:aws:s3:::logs")
    for copied, path in ((trail, "s3BucketName"), (flow, "logDestination")):
        assert judged("MLS-RES-02", copied, bucket, allowed_regions=EUROPE)["it"] == f"fail {path}"
    stored = made(STORED, "b", name="logs", location="EU")
    sink = made(_SINK, destination="storage.googleapis.com/logs")
    assert judged("MLS-RES-02", sink, stored, allowed_regions=EUROPE) == {"it": "fail destination"}
