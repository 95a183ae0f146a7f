"""Examples of the rules RES."""

import json

from tests.policies.examples.gpu import eks, gke_cluster
from tests.policies.recording.example import Example, Made

_DATA = Made("aws:s3/bucket:Bucket", {"bucket": "train-data"})
_VERSIONED = Made(
    "aws:s3/bucketVersioning:BucketVersioning",
    {"bucket": "$data", "versioningConfiguration": {"status": "Enabled"}},
)
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "s3.amazonaws.com"}}
    ],
}


def _replicated(region: str) -> dict[str, Made]:
    rule = {"id": "all", "status": "Enabled", "destination": {"bucket": "$copy.arn"}}
    return eks(
        data=_DATA,
        copy=Made("aws:s3/bucket:Bucket", {"bucket": "train-copy", "region": region}),
        data_versions=_VERSIONED,
        copy_versions=_VERSIONED.but(bucket="$copy", region=region),
        copier=Made("aws:iam/role:Role", {"assumeRolePolicy": json.dumps(_TRUST)}),
        replication=Made(
            "aws:s3/bucketReplicationConfig:BucketReplicationConfig",
            {"bucket": "$data", "role": "$copier.arn", "rules": [rule]},
            after=("data_versions", "copy_versions"),
        ),
    )


def _google(location: str) -> dict[str, Made]:
    bucket = Made("gcp:storage/bucket:Bucket", {"name": "train-data", "location": location})
    return {**gke_cluster(), "data": bucket}


EXAMPLES = {
    "MLS-RES-01": Example(eks(data=_DATA), eks(data=_DATA.but(region="eu-west-1")), at="data", path="region"),
    "MLS-RES-01.gke": Example(_google("US-CENTRAL1"), _google("EU"), at="data", path="location"),
    "MLS-RES-02": Example(
        _replicated("us-east-1"),
        _replicated("us-west-2"),
        at="replication",
        path="rules[0].destination.bucket",
    ),
}
