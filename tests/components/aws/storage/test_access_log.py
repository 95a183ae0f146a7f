"""S3 can log the use of a stack's buckets, and no other principal can write or read there."""

from typing import Any

import pulumi

from components.aws.storage.access_log import AwsAccessLog
from components.aws.storage.bucket import AwsBucket
from tests.components.recorder import ACCOUNT, Recorder, deploy, statements


def made() -> Recorder:
    def program() -> dict[str, pulumi.Output[Any]]:
        log = AwsAccessLog("log", {"retention_days": 90})
        bucket = AwsBucket("data", {"kms_key_arn": "key", "noncurrent_days": 30, "log_bucket": log.bucket})
        return {"bucket": bucket.bucket}

    return deploy(program)[0]


def test_only_s3_writes_and_only_for_this_account() -> None:
    policy = statements(made().one("aws:s3/bucketPolicy:BucketPolicy", "log-policy").properties["policy"])
    (allowed,) = (one for one in policy.values() if one["Effect"] == "Allow")
    assert allowed["Principal"] == {"Service": "logging.s3.amazonaws.com"}
    assert allowed["Action"] == "s3:PutObject"
    assert allowed["Condition"] == {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
    assert policy["TlsOnly"]["Effect"] == "Deny"


def test_a_load_balancer_writes_below_the_number_of_its_account() -> None:
    def program() -> dict[str, pulumi.Output[Any]]:
        return {"log": AwsAccessLog("log", {"retention_days": 90, "load_balancer": True}).bucket}

    cloud = deploy(program)[0]
    policy = statements(cloud.one("aws:s3/bucketPolicy:BucketPolicy").properties["policy"])
    balancers = policy["LoadBalancersOfThisAccount"]
    assert balancers["Principal"] == {"Service": "logdelivery.elasticloadbalancing.amazonaws.com"}
    assert balancers["Action"] == "s3:PutObject"
    assert balancers["Resource"].endswith(f"/load-balancer/AWSLogs/{ACCOUNT}/*")
    assert policy["TlsOnly"]["Effect"] == "Deny" and "LogsOfThisAccount" in policy


def test_the_log_is_private_and_ends() -> None:
    cloud = made()
    blocks = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
    access = cloud.one(blocks, "log-public-access").properties
    assert [access[key] for key in sorted(access) if key != "bucket"] == [True] * 4
    (rule,) = cloud.one(
        "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration", "log-lifecycle"
    ).properties["rules"]
    assert rule["expiration"] == {"days": 90}
    # S3 cannot write its logs under a customer's key.
    assert not [asked for asked in cloud.asked if "log-encryption" in asked.name]


def test_a_bucket_logs_under_its_own_name() -> None:
    logging = made().one("aws:s3/bucketLogging:BucketLogging").properties
    assert (logging["targetBucket"], logging["targetPrefix"]) == ("log", "data/")
