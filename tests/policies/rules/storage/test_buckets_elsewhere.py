"""Settings of buckets that are not in the stack, and buckets that services write their logs to."""

import json
from typing import Any

import pytest

from policies.resource import PartlyKnown, Resource, UnknownValue
from tests.policies.rules.kubernetes.test_pods import judge
from tests.policies.rules.storage.test_buckets import BLOCK, KEY, first, results
from tests.policies.rules.storage.test_checkpoint_retention import about, s3


def google(kind: str, **props: Any) -> Resource:
    name = f"{kind[0].lower()}{kind[1:]}"
    return Resource(f"gcp:storage/{name}:{kind}", "it", "it", props={"bucket": "elsewhere", **props})


def opened(**statement: Any) -> Resource:
    allowed = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", **statement}
    return about("BucketPolicy", "elsewhere", policy=json.dumps({"Statement": [allowed]}))


def bound(member: str) -> str:
    return json.dumps({"bindings": [{"role": "roles/storage.objectViewer", "members": [member]}]})


OFF = {**BLOCK, "restrictPublicBuckets": False}
ORGANIZATION = {"StringEquals": {"aws:PrincipalOrgID": "o-1"}}
ALL_USERS = {"grantee": {"uri": "http://acs.amazonaws.com/groups/global/AllUsers"}}


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (about("BucketPublicAccessBlock", "elsewhere", **dict.fromkeys(BLOCK, False)), "fail"),
        (about("BucketPublicAccessBlock", "elsewhere", **OFF), "fail"),
        (about("BucketPublicAccessBlock", "elsewhere", **BLOCK), "pass"),
        (about("BucketPublicAccessBlock", "elsewhere"), "fail"),
        (about("AccountPublicAccessBlock", "", **OFF), "fail"),
        (about("AccountPublicAccessBlock", "", **BLOCK), "pass"),
        (opened(Principal="*"), "fail"),
        (opened(NotPrincipal={"AWS": "arn:aws:iam::1:root"}), "fail"),
        (opened(Principal="*", Condition={"Bool": {"aws:SecureTransport": "true"}}), "fail"),
        (opened(Principal="*", Condition={"IpAddress": {"aws:SourceIp": "0.0.0.0/0"}}), "fail"),
        (opened(Principal="*", Condition={"StringLike": {"aws:PrincipalArn": "*"}}), "fail"),
        (opened(Principal="*", Condition=ORGANIZATION), "pass"),
        (opened(Principal={"AWS": "arn:aws:iam::1:root"}), "pass"),
        (opened(Principal="*", Effect="Deny"), "pass"),
        (about("BucketAcl", "elsewhere", acl="public-read"), "fail"),
        (about("BucketAclV2", "elsewhere", accessControlPolicy={"grants": [ALL_USERS]}), "fail"),
        (about("BucketAcl", "elsewhere", acl="private"), "pass"),
        (google("BucketIAMMember", member="allUsers", role="roles/storage.objectViewer"), "fail"),
        (google("BucketIAMBinding", members=["user:a@example.com", "allAuthenticatedUsers"]), "fail"),
        (google("BucketIAMMember", member="user:a@example.com"), "pass"),
        (google("BucketAccessControl", entity="allUsers", role="READER"), "fail"),
        (google("BucketACL", roleEntities=["OWNER:project-owners-1", "READER:allUsers"]), "fail"),
        (google("BucketACL", predefinedAcl="publicRead"), "fail"),
        (google("BucketACL", predefinedAcl="projectPrivate"), "pass"),
        (google("BucketIAMPolicy", policyData=bound("allUsers")), "fail"),
        (google("BucketIAMPolicy", policyData=bound("user:a@example.com")), "pass"),
        (google("BucketIAMPolicy", policyData="no JSON"), "undetermined"),
        (google("ManagedFolderIamPolicy", managedFolder="data/", policyData=bound("allUsers")), "fail"),
        (google("ManagedFolderIamMember", managedFolder="data/", member="allUsers"), "fail"),
        (google("ManagedFolderIamBinding", managedFolder="data/", members=["user:a@example.com"]), "pass"),
        (google("ObjectACL", object="data", roleEntities=["READER:allUsers"]), "fail"),
        (google("ObjectACL", object="data", predefinedAcl="private"), "pass"),
        (google("ObjectAccessControl", object="data", entity="allAuthenticatedUsers"), "fail"),
    ],
)
def test_settings_of_a_bucket_elsewhere_do_not_open_it(setting: Resource, expected: str) -> None:
    assert results("MLS-STO-01", setting) == {expected}


@pytest.mark.parametrize(
    ("operator", "key", "value", "expected"),
    [
        ("NotIpAddress", "aws:SourceIp", "10.0.0.0/8", "fail"),
        ("IpAddress", "aws:SourceIp", ["0.0.0.0/1", "128.0.0.0/1"], "fail"),
        ("IpAddress", "aws:SourceIp", "52.0.0.0/6", "fail"),
        ("IpAddress", "aws:SourceIp", ["203.0.113.0/24", "::/0"], "fail"),
        ("IpAddress", "aws:SourceIp", "2600::/20", "fail"),
        ("IpAddressIfExists", "aws:SourceIp", "203.0.113.0/24", "fail"),
        ("IpAddress", "aws:SourceIp", ["203.0.113.0/24", "2001:db8::/32", "198.51.100.7"], "pass"),
        ("IpAddress", "aws:VpcSourceIp", "10.0.0.0/8", "fail"),
        ("StringNotEquals", "aws:PrincipalAccount", "123456789012", "fail"),
        ("StringEqualsIfExists", "aws:PrincipalOrgID", "o-1", "fail"),
        ("ForAllValues:StringEquals", "aws:PrincipalOrgID", "o-1", "fail"),
        ("Null", "aws:PrincipalOrgID", "true", "fail"),
        ("StringLike", "aws:PrincipalOrgID", "o-*", "fail"),
        ("StringLike", "aws:PrincipalOrgID", "o-a*", "fail"),
        ("ForAnyValue:StringLike", "aws:PrincipalOrgPaths", "o-*/r-*/*", "fail"),
        ("ForAnyValue:StringLike", "aws:PrincipalOrgPaths", "o-1/r-1/*", "pass"),
        ("StringLike", "aws:SourceVpce", "vpce-*", "fail"),
        ("StringEquals", "aws:SourceVpce", "vpce-1", "pass"),
        ("StringEquals", "aws:SourceVpc", ["vpc-1", "vpc-2"], "pass"),
        ("ArnLike", "aws:PrincipalArn", "arn:aws:iam::*:user/*", "fail"),
        ("ArnLike", "aws:PrincipalArn", "arn:aws:iam::123456789012:user/*", "pass"),
        ("ArnLike", "aws:SourceArn", "arn:aws:cloudfront::*:distribution/*", "fail"),
        ("StringEquals", "aws:SourceArn", "arn:aws:cloudfront::123456789012:distribution/E1", "pass"),
        ("StringEquals", "aws:SourceAccount", "${aws:PrincipalAccount}", "fail"),
        ("StringLike", "aws:userid", "*:session", "fail"),
        ("StringLike", "aws:userid", "AROAEXAMPLEID:*", "pass"),
        ("StringLike", "aws:Referer", "https://example.com/*", "fail"),
        ("StringEquals", "aws:Referer", "https://example.com/", "fail"),
        ("StringEquals", "aws:PrincipalTag/team", "ml", "fail"),
        ("StringEquals", "aws:ResourceOrgID", "o-1", "fail"),
        ("StringEquals", "s3:DataAccessPointAccount", "123456789012", "pass"),
        ("ArnLike", "s3:DataAccessPointArn", "arn:aws:s3:us-west-2:123456789012:accesspoint/*", "pass"),
        ("ArnLike", "s3:DataAccessPointArn", "arn:aws:s3:us-west-2:*:accesspoint/*", "fail"),
    ],
)
def test_a_condition_has_to_name_the_callers(operator: str, key: str, value: Any, expected: str) -> None:
    """S3 User Guide, "Blocking public access to your Amazon S3 storage", the meaning of "public"."""
    assert results("MLS-STO-01", opened(Principal="*", Condition={operator: {key: value}})) == {expected}


@pytest.mark.parametrize("rule", ["MLS-STO-01", "MLS-STO-02", "MLS-STO-03", "MLS-STO-04"])
def test_a_setting_of_a_bucket_in_the_stack_is_judged_with_it(rule: str) -> None:
    known = (
        *(about(kind, "ckpt") for kind in ("BucketPublicAccessBlock", "BucketVersioning", "BucketAcl")),
        about("BucketServerSideEncryptionConfiguration", "ckpt"),
        about("BucketLifecycleConfiguration", "ckpt"),
    )
    unknown = [
        Resource(one.kind, one.name, one.name, props=PartlyKnown(bucket=UnknownValue("bucket", "is later")))
        for one in known
    ]
    apart = {one.result for one in judge(rule, s3("ckpt"), *known) if one.resource in known and not one.path}
    assert apart == {"not-applicable"}
    assert {one.result for one in judge(rule, *unknown)} == {"undetermined"}


AES = [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}]
ABORTED = {"status": "Enabled", "abortIncompleteMultipartUpload": {"daysAfterInitiation": 3}}


@pytest.mark.parametrize(
    ("rule", "setting", "expected"),
    [
        ("02", about("BucketServerSideEncryptionConfiguration", "elsewhere", rules=AES), "fail"),
        (
            "02",
            about(
                "BucketServerSideEncryptionConfiguration",
                "elsewhere",
                rules=[
                    {"applyServerSideEncryptionByDefault": {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": KEY}}
                ],
            ),
            "pass",
        ),
        (
            "03",
            about("BucketVersioning", "ckpt", versioningConfiguration={"status": "Suspended"}),
            "fail",
        ),
        ("03", about("BucketVersioning", "ckpt", versioningConfiguration={"status": "Enabled"}), "pass"),
        (
            "03",
            about("BucketVersioning", "logs", versioningConfiguration={"status": "Suspended"}),
            "not-applicable",
        ),
        ("04", about("BucketLifecycleConfiguration", "logs", rules=[]), "fail"),
        ("04", about("BucketLifecycleConfiguration", "logs", rules=[ABORTED]), "pass"),
    ],
)
def test_settings_of_a_bucket_elsewhere(rule: str, setting: Resource, expected: str) -> None:
    assert results(f"MLS-STO-{rule}", setting) == {expected}


DELIVERY = {"uri": "http://acs.amazonaws.com/groups/s3/LogDelivery", "type": "Group"}


def delivered(service: str) -> Resource:
    allowed = {"Effect": "Allow", "Action": "s3:PutObject", "Principal": {"Service": service}}
    return about("BucketPolicy", "ckpt", policy=json.dumps({"Statement": allowed}))


def balancer(**props: Any) -> Resource:
    return Resource("aws:lb/loadBalancer:LoadBalancer", "lb", "lb", props=props)


LOGS = {"accessLogs": {"bucket": "ckpt", "enabled": True}}


@pytest.mark.parametrize("rule", ["MLS-STO-02", "MLS-STO-04"])
@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([first(acl="log-delivery-write")], "not-applicable"),
        ([first(acl="private")], "fail"),
        ([first(grants=[DELIVERY])], "not-applicable"),
        ([first(), about("BucketAcl", "ckpt", acl="log-delivery-write")], "not-applicable"),
        ([first(), about("BucketAclV2", "ckpt", acl="log-delivery-write")], "not-applicable"),
        (
            [first(), about("BucketAcl", "ckpt", accessControlPolicy={"grants": [{"grantee": DELIVERY}]})],
            "not-applicable",
        ),
        ([first(), about("BucketAcl", "other", acl="log-delivery-write")], "fail"),
        ([first(), delivered("logging.s3.amazonaws.com")], "not-applicable"),
        ([first(), delivered("logdelivery.elasticloadbalancing.amazonaws.com")], "not-applicable"),
        ([first(), delivered("cloudtrail.amazonaws.com")], "fail"),
        ([first(), balancer(**LOGS)], "not-applicable"),
        ([first(), balancer(loadBalancerType="network", **LOGS)], "fail"),
        ([first(), balancer(accessLogs={"bucket": "other"})], "fail"),
    ],
)
def test_buckets_that_services_write_their_logs_to(
    rule: str, resources: list[Resource], expected: str
) -> None:
    assert results(rule, *resources) == {expected}
