"""Settings of buckets in every form: of their own, inline, of both generations; what is right passes."""

from typing import Any

import pytest

from policies.resource import PartlyKnown, Resource, UnknownValue
from tests.policies.rules.kubernetes.test_pods import judge
from tests.policies.rules.storage.test_checkpoint_retention import about, s3

KEY = "arn:aws:kms:us-east-1:123456789012:key/1"
BLOCK = dict.fromkeys(
    ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets"), True
)


def results(rule: str, *resources: Resource) -> set[str]:
    """Results of a rule but those of settings of buckets that are judged with their bucket."""
    return {one.result for one in judge(rule, *resources) if one.message != "its bucket is judged"}


def gcs(**props: Any) -> Resource:
    return Resource("gcp:storage/bucket:Bucket", "ckpt", "ckpt", id="ckpt", props={"name": "ckpt", **props})


def first(**props: Any) -> Resource:
    return Resource("aws:s3/bucket:Bucket", "ckpt", "ckpt", id="ckpt", props={"bucket": "ckpt", **props})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([about("BucketPublicAccessBlock", "ckpt", **BLOCK)], "pass"),
        ([about("BucketPublicAccessBlock", "ckpt", **{**BLOCK, "ignorePublicAcls": None})], "fail"),
        ([about("AccountPublicAccessBlock", "", **BLOCK)], "pass"),
        ([about("BucketPublicAccessBlock", "other", **BLOCK)], "fail"),
        ([], "fail"),
    ],
)
def test_a_block_of_the_bucket_or_of_the_account(found: list[Resource], expected: str) -> None:
    bucket = s3("ckpt")
    judged = {one.result for one in judge("MLS-STO-01", bucket, *found) if one.resource not in found}
    blamed = {one.result for one in judge("MLS-STO-01", bucket, *found) if one.path}
    assert (judged or blamed) == {expected}


def by_default(**default: Any) -> dict[str, Any]:
    return {"applyServerSideEncryptionByDefault": default}


OURS = {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": KEY}
LISTED = [{"rules": [{"applyServerSideEncryptionByDefaults": [OURS]}]}]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([first(serverSideEncryptionConfiguration={"rule": by_default(**OURS)})], "pass"),
        ([s3("ckpt", serverSideEncryptionConfigurations=LISTED)], "pass"),
        (
            [
                s3("ckpt"),
                about("BucketServerSideEncryptionConfigurationV2", "ckpt", rules=[by_default(**OURS)]),
            ],
            "pass",
        ),
        (
            [
                first(serverSideEncryptionConfiguration={"rule": by_default(**OURS)}),
                about(
                    "BucketServerSideEncryptionConfiguration",
                    "ckpt",
                    rules=[by_default(sseAlgorithm="AES256")],
                ),
            ],
            "fail",
        ),
        (
            [
                first(
                    serverSideEncryptionConfiguration={
                        "rule": by_default(sseAlgorithm="aws:kms:dsse", kmsMasterKeyId="alias/aws/s3")
                    }
                )
            ],
            "fail",
        ),
        ([first()], "fail"),
    ],
)
def test_a_key_of_ours_in_every_form(resources: list[Resource], expected: str) -> None:
    assert results("MLS-STO-02", *resources) == {expected}


def test_a_key_that_is_not_known_yet_counts_where_it_comes_from_one() -> None:
    later = PartlyKnown({"sseAlgorithm": "aws:kms", "kmsMasterKeyId": UnknownValue("rules", "is not known")})
    kind = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"

    def setting(*urns: str) -> Resource:
        rules = [{"applyServerSideEncryptionByDefault": later}]
        return Resource(
            kind, "e", "e", props={"bucket": "ckpt", "rules": rules}, references={"rules": list(urns)}
        )

    own = "urn:pulumi:dev::app::aws:kms/key:Key::data"
    assert results("MLS-STO-02", first(), setting(own)) == {"pass"}
    assert results("MLS-STO-02", first(), setting()) == {"undetermined"}


@pytest.mark.parametrize("rule", ["MLS-STO-02", "MLS-STO-04"])
def test_the_target_of_access_logs_takes_no_key_of_kms(rule: str) -> None:
    target = first()
    apart = about("BucketLogging", "data", targetBucket="ckpt")
    assert results(rule, target, apart) == {"not-applicable"}
    inline = s3("data", loggings=[{"targetBucket": "ckpt"}])
    assert "not-applicable" in results(rule, target, inline)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([s3("ckpt", objectLockEnabled=True)], "pass"),
        ([s3("ckpt", versionings=[{"enabled": True}])], "pass"),
        ([first(versioning={"enabled": True})], "pass"),
        (
            [
                first(versioning={"enabled": True}),
                about("BucketVersioning", "ckpt", versioningConfiguration={"status": "Suspended"}),
            ],
            "fail",
        ),
        ([gcs(hierarchicalNamespace={"enabled": True})], "not-applicable"),
        ([gcs()], "fail"),
        ([s3("datasets")], "not-applicable"),
        ([Resource("aws:s3/bucket:Bucket", "b", "b", tags={"Purpose": "Model artifacts"})], "fail"),
        ([Resource("aws:s3/bucket:Bucket", "b", "b", tags={"owner": "model-team"})], "not-applicable"),
    ],
)
def test_results_have_versions(resources: list[Resource], expected: str) -> None:
    assert results("MLS-STO-03", *resources) == {expected}


ABORT = {"abortIncompleteMultipartUpload": {"daysAfterInitiation": 7}}
END = {"expiration": {"days": 30}}
OLD = {"noncurrentVersionExpiration": {"noncurrentDays": 7}}
VERSIONS = about("BucketVersioning", "ckpt", versioningConfiguration={"status": "Enabled"})


def lifecycle(*rules: Any) -> Resource:
    return about(
        "BucketLifecycleConfiguration", "ckpt", rules=[{"status": "Enabled", **one} for one in rules]
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([lifecycle(ABORT, END)], "pass"),
        ([lifecycle({**ABORT, "filter": {"prefix": ""}}, END)], "pass"),
        ([lifecycle({**ABORT, "filter": {"prefix": "runs/"}}, END)], "fail"),
        ([lifecycle({**ABORT, "prefix": "runs/"}, END)], "fail"),
        ([lifecycle({**ABORT, "status": "Disabled"}, END)], "fail"),
        ([lifecycle({"abortIncompleteMultipartUpload": {"daysAfterInitiation": 8}}, END)], "fail"),
        ([lifecycle(ABORT, {"expiration": {"expiredObjectDeleteMarker": True}})], "fail"),
        ([lifecycle(ABORT, END), VERSIONS], "fail"),
        ([lifecycle(ABORT, END, OLD), VERSIONS], "pass"),
    ],
)
def test_uploads_and_checkpoints_end(found: list[Resource], expected: str) -> None:
    assert results("MLS-STO-04", first(), *found) - {"not-applicable"} == {expected}


@pytest.mark.parametrize(("rules", "expected"), [([ABORT, END], "pass"), ([ABORT], "fail"), ([END], "fail")])
def test_a_lifecycle_of_a_bucket_elsewhere_is_judged_by_itself(rules: list[Any], expected: str) -> None:
    assert results("MLS-STO-04", lifecycle(*rules)) == {expected}


@pytest.mark.parametrize(
    ("bucket", "expected"),
    [
        (
            first(
                lifecycleRules=[
                    {"enabled": True, "abortIncompleteMultipartUploadDays": 1, "expiration": {"days": 9}}
                ]
            ),
            "pass",
        ),
        (
            s3(
                "ckpt",
                lifecycleRules=[
                    {"enabled": True, "abortIncompleteMultipartUploadDays": 1, "expirations": [{"days": 9}]}
                ],
            ),
            "pass",
        ),
        (s3("datasets", lifecycleRules=[{"enabled": True, "abortIncompleteMultipartUploadDays": 1}]), "pass"),
        (
            s3("datasets", lifecycleRules=[{"enabled": False, "abortIncompleteMultipartUploadDays": 1}]),
            "fail",
        ),
    ],
)
def test_they_end_inline_too(bucket: Resource, expected: str) -> None:
    assert results("MLS-STO-04", bucket) == {expected}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"age": 30}, "pass"),
        ({"age": 30, "withState": "LIVE"}, "fail"),
        ({"daysSinceNoncurrentTime": 7}, "fail"),
    ],
)
def test_versions_of_google_end_with_any_state_only(condition: Any, expected: str) -> None:
    abort = {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}}
    rules = [abort, {"action": {"type": "Delete"}, "condition": condition}]
    assert results("MLS-STO-04", gcs(versioning={"enabled": True}, lifecycleRules=rules)) == {expected}


@pytest.mark.parametrize("inline", [True, False])
def test_a_website_that_everybody_reads_cannot_have_a_key_of_kms(inline: bool) -> None:
    bucket = s3("site", website={"indexDocument": "index.html"}) if inline else s3("site")
    own = about("BucketWebsiteConfiguration", "site", indexDocument={"suffix": "index.html"})
    assert results("MLS-STO-02", bucket, *([] if inline else [own])) == {"not-applicable"}
