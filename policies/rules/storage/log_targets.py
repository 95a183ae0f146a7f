"""Buckets that services write their logs to, without a right to use a key of KMS."""

from collections.abc import Callable, Iterator
from typing import Any

from policies.resource import Resource, UndeterminedError
from policies.rules.identity.policy_documents import statements
from policies.rules.properties import each
from policies.rules.storage.buckets import S3, kinds_of, settings_of
from policies.stack import Stack

LOG_TARGET = "only the log delivery service writes to it"
_LOGGINGS = ("aws:s3/bucketLogging:BucketLogging", "aws:s3/bucketLoggingV2:BucketLoggingV2")
# Application and classic load balancers encrypt with SSE-S3 only (Elastic Load Balancing, "Access logs":
# bucket requirements; aws/aws-cdk#21947), as S3 itself (S3 User Guide, "Enabling Amazon S3 server access
# logging"); with a policy for them, or their ACL, a bucket receives such logs from elsewhere.
# Network load balancers, flow logs, CloudTrail and AWS Config also write with a key of KMS.
_BALANCERS = (
    *("aws:lb/loadBalancer:LoadBalancer", "aws:alb/loadBalancer:LoadBalancer"),
    *("aws:elb/loadBalancer:LoadBalancer", "aws:applicationloadbalancing/loadBalancer:LoadBalancer"),
    "aws:elasticloadbalancing/loadBalancer:LoadBalancer",
)
_WRITERS = ("logging.s3.amazonaws.com", "logdelivery.elasticloadbalancing.amazonaws.com")
_GROUP = "groups/s3/LogDelivery"
_CANNED = "log-delivery-write"


def is_log_target(bucket: Resource, stack: Stack) -> bool:
    """Return whether it receives access logs of a bucket or a load balancer, or is open to their delivery.

    Raises UndeterminedError if that is not known, and nothing known decides it.
    """
    unknown: UndeterminedError | None = None
    for check in _CHECKS:
        try:
            if check(bucket, stack):
                return True
        except UndeterminedError as error:
            unknown = unknown or error
    if unknown:
        raise unknown
    return False


def _is_target(bucket: Resource, stack: Stack) -> bool:
    return any(any(stack.users(bucket, kind, "targetBucket")) for kind in _LOGGINGS)


def _is_inline_target(bucket: Resource, stack: Stack) -> bool:
    targets, unknown = stack.once(_inline_targets)
    if unknown and bucket.urn not in targets:
        raise unknown
    return bucket.urn in targets


def _inline_targets(stack: Stack) -> tuple[set[str], UndeterminedError | None]:
    """Log targets in settings of buckets and load balancers, and the error of unknown ones."""
    found: set[str] = set()
    unknown: UndeterminedError | None = None
    for other, path, value in _named_targets(stack):
        try:
            target = stack.referred(other, value, path.partition("[")[0], *S3)
        except UndeterminedError as error:
            unknown = unknown or error
        else:
            found |= {target.urn} if target else set()
    return found, unknown


def _named_targets(stack: Stack) -> Iterator[tuple[Resource, str, Any]]:
    for bucket in stack.all(*S3):
        for key in ("logging", "loggings"):
            for path, logging in each(bucket.props, key):
                yield bucket, path, dict.get(logging, "targetBucket")
    for balancer in stack.reported(*_BALANCERS):
        if balancer.raw("loadBalancerType") in ("network", "gateway"):
            continue
        for key in ("accessLogs", "connectionLogs"):
            for path, logs in each(balancer.props, key):
                if logs.get("enabled") is not False:
                    yield balancer, path, dict.get(logs, "bucket")


def _has_acl(bucket: Resource, stack: Stack) -> bool:
    """The group of S3 log delivery has a right: by a canned ACL, or by a grant."""
    own = [bucket, *_settings(bucket, stack, "bucketAcl")]
    if any(one.props.get("acl") == _CANNED for one in own):
        return True
    grants = [found for one in own for found in each(one.props, "grants")]
    grants += [found for one in own for found in each(one.props, "accessControlPolicy", "grants", "grantee")]
    return any(str(grant.get("uri") or "").endswith(_GROUP) for _, grant in grants)


def _settings(bucket: Resource, stack: Stack, name: str) -> list[Resource]:
    """Settings of a bucket; none from sources that never report such settings."""
    unread = any(map(stack.coverage.out_of_reach, kinds_of(name)))
    return [] if unread else settings_of(bucket, stack, name)


def _has_policy(bucket: Resource, stack: Stack) -> bool:
    """A policy of the bucket lets a service write that has no right to use a key."""
    found = _settings(bucket, stack, "bucketPolicy")
    texts = [(one.props.get("policy"), "policy") for one in (bucket, *found)]
    return any(
        one.allows and value in _WRITERS
        for text, path in texts
        for one in statements(text, path)
        for _, value in one.principals
    )


_CHECKS: tuple[Callable[[Resource, Stack], bool], ...] = (
    _is_target,
    _is_inline_target,
    _has_acl,
    _has_policy,
)
