"""Public access to buckets, also to those of which the stack has only settings."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.identity.callers import names_callers_of_bucket
from policies.rules.identity.policy_documents import bindings, statements
from policies.rules.properties import each
from policies.rules.storage.buckets import GCS, S3, check_elsewhere, kinds_of, settings_of
from policies.stack import Stack

_BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
_ACCOUNT = "aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock"
_OWN_BLOCK, _ACLS, _POLICIES = map(kinds_of, ("bucketPublicAccessBlock", "bucketAcl", "bucketPolicy"))
_GRANTS = tuple(
    f"gcp:storage/{name}:{name[0].upper()}{name[1:]}"
    for name in (
        *("bucketIAMMember", "bucketIAMBinding", "bucketACL", "bucketAccessControl"),
        *("defaultObjectACL", "defaultObjectAccessControl", "objectACL", "objectAccessControl"),
        *("bucketIAMPolicy", "managedFolderIamMember", "managedFolderIamBinding", "managedFolderIamPolicy"),
    )
)
_CANNED = ("public-read", "public-read-write", "authenticated-read")
_GROUPS = ("groups/global/AllUsers", "groups/global/AuthenticatedUsers")
_ANYBODY = ("allusers", "allauthenticatedusers")
_PREDEFINED = ("publicread", "publicreadwrite", "authenticatedread")


@CATALOG.rule_around(
    "MLS-STO-01",
    "critical",
    (*S3, GCS, *_OWN_BLOCK, _ACCOUNT, *_ACLS, *_POLICIES, *_GRANTS),
    "Datasets and weights in a public bucket are copied unnoticed. New buckets of S3 are private, but"
    " only a block in the stack shows when one is opened by hand.",
    "Add a BucketPublicAccessBlock with all four settings; in Google Cloud, enforce publicAccessPrevention.",
    ("CKV_AWS_53", "CKV2_AWS_6", "CKV_GCP_114", "CKV_AWS_20", "CKV_AWS_70", "CKV_GCP_28"),
)
def no_bucket_is_public(source: Resource, stack: Stack) -> Iterator[Violation]:
    """Every bucket has a block of public access in the stack; no setting of one elsewhere opens it."""
    if source.kind == GCS:
        if source.props.get("publicAccessPrevention") != "enforced":
            yield Violation("nothing here prevents public access", "publicAccessPrevention")
    elif source.kind in S3:
        blocks = [*settings_of(source, stack, "bucketPublicAccessBlock"), *stack.all(_ACCOUNT)]
        if not blocks:
            yield Violation("the stack sets no block of public access")
        else:
            yield from _off(blocks)
    elif source.kind == _ACCOUNT:
        if stack.all(*S3):
            raise NotApplicableError("the buckets of the stack are judged with it")
        yield from _off([source])
    else:
        check_elsewhere(source, stack)
        yield from _opening(source, stack)


def _off(blocks: list[Resource]) -> Iterator[Violation]:
    for name in _BLOCKS:
        if not any(block.props.get(name) is True for block in blocks):
            yield Violation(f"{name} is off", name, resource=blocks[0])


def _opening(setting: Resource, stack: Stack) -> Iterator[Violation]:
    """Violations by a setting of a bucket that is not in the stack."""
    props = setting.props
    if setting.kind in _OWN_BLOCK:
        yield from _off([setting, *stack.all(_ACCOUNT)])
    elif setting.kind in _POLICIES:
        for one in statements(props.get("policy"), "policy"):
            if one.allows and ("AWS", "*") in one.principals and not names_callers_of_bucket(one):
                yield Violation("everybody may use the bucket", one.path)
    elif setting.kind in _ACLS:
        if props.get("acl") in _CANNED:
            yield Violation(f"its ACL is {props['acl']}", "acl")
        for path, grantee in each(props, "accessControlPolicy", "grants", "grantee"):
            if str(grantee.get("uri") or "").endswith(_GROUPS):
                yield Violation("everybody has a right by its ACL", f"{path}.uri")
    else:
        yield from _granted(props)


def _granted(props: Any) -> Iterator[Violation]:
    for key in ("member", "entity"):
        if str(props.get(key) or "").lower() in _ANYBODY:
            yield Violation(f"{props[key]} has {props.get('role')}", key)
    for index, member in enumerate(props.get("members") or ()):
        if str(member).lower() in _ANYBODY:
            yield Violation(f"{member} has {props.get('role')}", f"members[{index}]")
    for path, binding in bindings(props.get("policyData"), "policyData"):
        for index, member in enumerate(binding.get("members") or ()):
            if str(member).lower() in _ANYBODY:
                yield Violation(f"{member} has {binding.get('role')}", f"{path}.members[{index}]")
    for index, pair in enumerate(props.get("roleEntities") or ()):
        if str(pair).partition(":")[2].lower() in _ANYBODY:
            yield Violation(f"everybody has a right by its ACL: {pair}", f"roleEntities[{index}]")
    for key in ("predefinedAcl", "defaultAcl"):
        if str(props.get(key) or "").lower() in _PREDEFINED:
            yield Violation(f"its ACL is {props[key]}", key)
