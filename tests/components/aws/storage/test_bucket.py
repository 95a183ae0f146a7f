"""A bucket refuses what it must refuse, whatever it is for."""

import fnmatch
from typing import Any, cast

import pulumi
import pytest

from components.aws.storage.bucket import AwsBucket, AwsBucketArgs
from tests.components.recorder import Recorder, deploy, statements

KEY = "arn:aws:kms:eu-central-1:111122223333:key/k"


def made(**purpose: Any) -> tuple[Recorder, dict[str, Any]]:
    def program() -> dict[str, pulumi.Output[Any]]:
        args = {"kms_key_arn": KEY, "noncurrent_days": 30} | purpose
        bucket = AwsBucket("data", cast(AwsBucketArgs, args))
        return {"bucket": bucket.bucket, "arn": bucket.arn}

    return deploy(program)


def token(kind: str) -> str:
    return f"aws:s3/{kind[0].lower()}{kind[1:]}:{kind}"


def test_bucket_is_private_versioned_and_owned_by_the_account() -> None:
    cloud, outputs = made()
    access = cloud.one(token("BucketPublicAccessBlock")).properties
    assert [access[key] for key in sorted(access) if key != "bucket"] == [True] * 4
    assert cloud.one(token("BucketVersioning")).properties["versioningConfiguration"] == {"status": "Enabled"}
    assert cloud.one(token("BucketOwnershipControls")).properties["rule"] == {
        "objectOwnership": "BucketOwnerEnforced"
    }
    assert outputs == {"bucket": "data", "arn": "arn:aws:s3:eu-central-1:111122223333:data"}


def test_bucket_encrypts_with_our_key_and_refuses_customer_keys() -> None:
    cloud, _ = made()
    (rule,) = cloud.one(token("BucketServerSideEncryptionConfiguration")).properties["rules"]
    assert rule["applyServerSideEncryptionByDefault"] == {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": KEY}
    assert rule["bucketKeyEnabled"] is True
    assert rule["blockedEncryptionTypes"] == ["SSE-C"]


def denied(policy: dict[str, Any], request: dict[str, str]) -> set[str]:
    """Which statements deny a request with these condition keys, by IAM's rules for the operators we use."""

    def holds(operator: str, key: str, value: str) -> bool:
        if operator == "Null":
            return (key not in request) == (value == "true")
        if operator == "ArnNotLike":
            return not any(fnmatch.fnmatchcase(request[key], pattern) for pattern in value)
        if operator == "StringNotEquals":  # a negated operator also matches when the key is absent
            return request.get(key) != value
        assert operator == "Bool"
        return request.get(key) == value

    return {
        sid
        for sid, statement in policy.items()
        if all(
            holds(operator, key, value)
            for operator, pairs in statement["Condition"].items()
            for key, value in pairs.items()
        )
    }


TLS = {"aws:SecureTransport": "true"}
SSE = "s3:x-amz-server-side-encryption"


@pytest.mark.parametrize(
    ("request_keys", "refused"),
    [
        (TLS, set()),
        ({"aws:SecureTransport": "false"}, {"TlsOnly"}),
        ({**TLS, SSE: "AES256"}, {"OurKeyOnly"}),
        ({**TLS, SSE: "aws:kms"}, {"OurKeyOnly"}),
        ({**TLS, SSE: "aws:kms", f"{SSE}-aws-kms-key-id": "arn:aws:kms:::key/other"}, {"OurKeyOnly"}),
        ({**TLS, SSE: "aws:kms", f"{SSE}-aws-kms-key-id": KEY}, set()),
    ],
    ids=["default", "http", "s3-key", "aws-managed-key", "other-key", "our-key"],
)
def test_policy_denies_plain_http_and_foreign_keys(request_keys: dict[str, str], refused: set[str]) -> None:
    cloud, _ = made()
    policy = statements(cloud.one(token("BucketPolicy")).properties["policy"])
    assert all(statement["Effect"] == "Deny" for statement in policy.values())
    assert denied(policy, request_keys) == refused


JOB, PERSON = (
    f"arn:aws:iam::111122223333:role/{name}" for name in ("dev-training-ada-1", "dev-person-ada-1")
)
KEY_ID = f"{SSE}-aws-kms-key-id"


@pytest.mark.parametrize(
    ("role", "request_keys", "refused"),
    [
        (JOB, {}, set()),
        (JOB, {SSE: "aws:kms"}, set()),
        (JOB, {SSE: "AES256"}, {"KmsOnly"}),
        (JOB, {SSE: "aws:kms", KEY_ID: "arn:aws:kms:::key/other"}, {"NoOtherKey"}),
        (JOB, {SSE: "aws:kms", KEY_ID: KEY}, set()),
        (JOB, {SSE: "AES256", KEY_ID: KEY}, {"KmsOnly"}),
        (PERSON, {}, set()),
        (PERSON, {SSE: "aws:kms"}, {"OurKeyOnly"}),
        (PERSON, {SSE: "aws:kms", KEY_ID: "arn:aws:kms:::key/other"}, {"OurKeyOnly", "NoOtherKey"}),
        (PERSON, {SSE: "aws:kms", KEY_ID: KEY}, set()),
    ],
)
def test_a_service_that_names_no_key_writes_as_the_roles_of_jobs_alone(
    role: str, request_keys: dict[str, str], refused: set[str]
) -> None:
    """SageMaker's CheckpointConfig has no key; both headers that it can send are accepted."""
    cloud, _ = made(unnamed_key_roles=["arn:aws:iam::111122223333:role/dev-training-*"])
    policy = statements(cloud.one(token("BucketPolicy")).properties["policy"])
    assert denied(policy, {**TLS, **request_keys, "aws:PrincipalArn": role}) == refused


def test_policy_covers_the_bucket_and_its_objects() -> None:
    cloud, outputs = made()
    policy = statements(cloud.one(token("BucketPolicy")).properties["policy"])
    assert policy["TlsOnly"]["Resource"] == [outputs["arn"], outputs["arn"] + "/*"]
    assert policy["OurKeyOnly"]["Resource"] == outputs["arn"] + "/*"


def lifecycle(cloud: Recorder) -> list[dict[str, Any]]:
    rules = cloud.one(token("BucketLifecycleConfiguration")).properties["rules"]
    assert all(rule["status"] == "Enabled" for rule in rules)
    return list(rules)


def test_old_versions_and_aborted_uploads_always_go() -> None:
    (rule,) = lifecycle(made()[0])
    assert rule["noncurrentVersionExpiration"] == {"noncurrentDays": 30}
    assert rule["abortIncompleteMultipartUpload"] == {"daysAfterInitiation": 7}
    assert rule["expiration"] == {"expiredObjectDeleteMarker": True}


def test_expiry_and_tiering_are_asked_for() -> None:
    (expiring,) = lifecycle(made(expire_days=90)[0])
    assert expiring["expiration"] == {"days": 90}
    tiering = lifecycle(made(intelligent_tiering=True)[0])[1]
    assert tiering["transitions"] == [{"days": 0, "storageClass": "INTELLIGENT_TIERING"}]
    assert "expiration" not in tiering


def test_losing_data_and_locking_objects_are_opt_in() -> None:
    careful = made()[0].one(token("Bucket")).properties
    assert careful.get("forceDestroy", False) is False
    assert careful.get("objectLockEnabled", False) is False
    bold = made(force_destroy=True, object_lock=True)[0].one(token("Bucket")).properties
    assert (bold["forceDestroy"], bold["objectLockEnabled"]) == (True, True)
