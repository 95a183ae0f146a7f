"""Conditions of a policy that limit the callers to those of an account, an organization or a network."""

import ipaddress
import re

from policies.rules.identity.policy_documents import Statement
from policies.rules.ip_ranges import is_world

_STRINGS = ("stringequals", "stringequalsignorecase", "stringlike", "arnequals", "arnlike")
_ADDRESSES = ("ipaddress",)
# A value of a policy variable comes from the request: `${aws:PrincipalAccount}` is that of each caller.
_WILD = re.compile(r"[*?]|\$\{")
_ACCOUNTLESS = ("s3",)
"""Services whose ARNs have no account: their names are unique."""
# S3 User Guide, "Blocking public access to your Amazon S3 storage", the meaning of "public". Tags of a
# principal, the referrer and an address within a VPC are not there: strangers choose them. The keys of
# an endpoint's owner are in the IAM User Guide, "AWS global condition context keys".
_GLOBAL = frozenset(
    (
        *("aws:principalorgid", "aws:principalorgpaths", "aws:principalarn", "aws:principalaccount"),
        *("aws:principalservicename", "aws:principalservicenameslist", "aws:userid"),
        *("aws:sourcearn", "aws:sourceaccount", "aws:sourceowner", "aws:sourceorgid", "aws:sourceorgpaths"),
        *("aws:sourcevpc", "aws:sourcevpcarn", "aws:sourcevpce"),
        *("aws:vpceaccount", "aws:vpceorgid", "aws:vpceorgpaths"),
    )
)
_OF_BUCKETS = _GLOBAL | {
    *("s3:dataaccesspointarn", "s3:dataaccesspointaccount"),
    "s3:x-amz-server-side-encryption-aws-kms-key-id",
}
# AWS KMS Developer Guide, "Condition keys for AWS KMS": the account of the caller. `kms:ViaService` names a
# service, which anybody uses.
_OF_OTHERS = _GLOBAL | {"kms:calleraccount"}
_WIDEST_V6_OF_BUCKETS = 32


def names_callers_of_bucket(statement: Statement) -> bool:
    """Return whether the conditions of a statement for everybody leave callers that its author named."""
    return _names_callers(statement, _OF_BUCKETS)


def names_callers(statement: Statement) -> bool:
    """The same for the policy of a key, queue, topic, secret or repository."""
    return _names_callers(statement, _OF_OTHERS)


def _names_callers(statement: Statement, keys: frozenset[str]) -> bool:
    return any(
        (key in keys and limits(operator, key, values))
        or (key == "aws:sourceip" and _limits_addresses(operator, values))
        for operator, key, values in statement.conditions()
    )


def limits(operator: str, key: str, values: tuple[str, ...]) -> bool:
    """Return whether a condition on an account, an organization or an ARN limits the callers."""
    return is_positive(operator) and bool(values) and all(_is_named(key, one) for one in values)


def is_positive(operator: str, among: tuple[str, ...] = _STRINGS) -> bool:
    """`IfExists` and `ForAllValues` are true if the key is absent, `Not...` for nearly all."""
    quantifier, _, plain = operator.lower().rpartition(":")
    return plain in among and quantifier != "forallvalues"


def _limits_addresses(operator: str, values: tuple[str, ...]) -> bool:
    return is_positive(operator, _ADDRESSES) and bool(values) and not any(map(_is_wide, values))


def _is_wide(cidr: str) -> bool:
    """Return whether S3 counts a range as the public, or it is none: broader than /8, in IPv6 than /32."""
    try:
        network = ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return True
    return is_world(cidr) or (network.version == 6 and network.prefixlen < _WIDEST_V6_OF_BUCKETS)


def _is_named(key: str, value: str) -> bool:
    """Return whether a value names one account, organization or bucket: strangers choose all other parts.

    `arn:aws:iam::*:role/deployer` admits the role of that name in any account. Wildcards count in each
    operator: in StringEquals they match no caller, so the condition is a mistake.
    """
    if not _WILD.search(value):
        return bool(value.strip(":/"))
    prefix = _WILD.split(value)[0]
    if key.endswith("arn"):
        _, _, service, _, account, *rest = [*value.split(":"), *[""] * 5]
        if service in _ACCOUNTLESS and not account:
            return "/" in _WILD.split(":".join(rest))[0]
        return bool(account) and not _WILD.search(account)
    if key.endswith("orgpaths"):
        return "/" in prefix.removeprefix("o-")
    # The id of a role, before the session that its callers name.
    return key == "aws:userid" and bool(prefix.partition(":")[0]) and ":" in prefix
