"""A deprecated or second name of a type is that type."""

import importlib.metadata
import re
from pathlib import Path

import pytest

from rehearsal.aws.table import canonical
from tests.rehearsal.aws.harness import Driver
from tests.rehearsal.driver import refused

SDK = Path(str(importlib.metadata.distribution("pulumi-aws").locate_file("pulumi_aws")))
RENAMED = re.compile(r"aws\.(\S+?)/(\w+)\.(\w+) has been deprecated in favor of aws\.(\S+?)/(\w+)\.(\w+)\"")


def test_a_load_balancer_by_its_second_name_needs_two_zones_too(aws: Driver) -> None:
    _, subnets = aws.network()
    for module in ("lb", "alb"):
        refused("subnet", aws.create, f"{module}/loadBalancer:LoadBalancer", subnets=subnets[:1])


def test_settings_of_a_bucket_find_it_by_its_former_name(aws: Driver) -> None:
    bucket = aws.create("s3/bucketV2:BucketV2", "data")["id"]
    aws.create("s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "closed", bucket=bucket)
    aws.create(
        "s3/bucketVersioningV2:BucketVersioningV2",
        "kept",
        bucket=bucket,
        versioningConfiguration={"status": "Enabled"},
    )


@pytest.mark.parametrize("folder", ["s3", "ec2", "lambda_"])
def test_names_that_the_sdk_deprecates_are_known(folder: str) -> None:
    texts = (path.read_text() for path in (SDK / folder).glob("*.py"))
    found = {match for text in texts for match in RENAMED.findall(text)}
    assert found
    for module, _, old, to_module, _, new in found:
        before = f"aws:{module}/{old[0].lower()}{old[1:]}:{old}"
        assert canonical(before) == f"aws:{to_module}/{new[0].lower()}{new[1:]}:{new}"
