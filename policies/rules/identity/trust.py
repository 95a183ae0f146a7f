"""Trust policies: identities that may assume a role or use a service account."""

from collections.abc import Iterator

from policies.catalog import CATALOG, Violation
from policies.resource import Resource
from policies.rules.identity.policy_documents import ROLE, Statement, statements
from policies.stack import Stack

_PROVIDER = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
_MEMBERS = ("gcp:serviceaccount/iAMMember:IAMMember", "gcp:serviceaccount/iAMBinding:IAMBinding")
_PUBLIC = ("allUsers", "allAuthenticatedUsers")
# Conditions on the account or resource that a service acts for; see "The confused deputy problem" in
# the IAM User Guide.
_OF_ACCOUNT = ("aws:sourceaccount", "aws:sourcearn", "aws:sourceorgid", "aws:sourceorgpaths")
_CALLER = ("aws:principalorgid", "aws:principalorgpaths", "aws:principalarn", "aws:principalaccount")
_ASSUMES = ("sts:assumerole", "sts:assumerolewithwebidentity", "sts:assumerolewithsaml")


@CATALOG.rule_around(
    "MLS-IAM-04",
    "high",
    (ROLE, _PROVIDER, *_MEMBERS),
    "Without conditions, a service account of another team, a foreign repository, or a service on behalf"
    " of another account can assume the role.",
    "Condition it on subject and audience of the token, or on aws:SourceAccount of the service.",
)
def trust_is_limited(trusting: Resource, stack: Stack) -> Iterator[Violation]:
    """Trust is limited to a subject and audience, or to an account."""
    props = trusting.props
    if trusting.kind == _PROVIDER:
        if props.get("oidc") and not props.get("attributeCondition"):
            message = "every identity of the issuer is accepted"
            yield Violation(message, "attributeCondition")
    elif trusting.kind in _MEMBERS:
        members = props.get("members") or [props.get("member")]
        for member in members:
            if member in _PUBLIC or str(member).endswith("/workloadIdentityPools/*"):
                yield Violation(f"{member} may use the service account", "member")
            elif str(member).startswith("principalSet:") and str(member).endswith("/*"):
                yield Violation("every identity of the pool may use the service account", "member")
    else:
        for one in statements(props.get("assumeRolePolicy"), "assumeRolePolicy"):
            if one.allows and any(map(one.allows_action, _ASSUMES)):
                yield from _loose(one, stack.settings.deputies)


def _loose(one: Statement, deputies: tuple[str, ...]) -> Iterator[Violation]:
    limits = {key for operator, key, values in one.conditions() if _limits(operator, values)}
    for kind, principal in one.principals:
        if kind == "AWS" and principal == "*" and not limits & {*_CALLER, *_OF_ACCOUNT}:
            yield Violation("every account of AWS may assume it", one.path)
        elif kind == "Service" and principal in deputies and not limits & set(_OF_ACCOUNT):
            message = f"{principal} may assume it for any account"
            yield Violation(message, one.path, "Condition it on aws:SourceAccount.")
        elif kind == "Federated" and ":oidc-provider/" in principal:
            for suffix, what in ((":sub", "subject"), (":aud", "audience")):
                if not any(key.endswith(suffix) for key in limits):
                    yield Violation(f"it has no condition on the {what} of {principal}", one.path)


def _limits(operator: str, values: tuple[str, ...]) -> bool:
    """Return whether a condition limits the identities.

    `IfExists` and `ForAllValues` are true if the key is absent, `Not...` and a bare `*` for nearly all.
    """
    quantifier, _, plain = operator.lower().rpartition(":")
    positive = plain in ("stringequals", "stringequalsignorecase", "stringlike", "arnequals", "arnlike")
    return positive and quantifier != "forallvalues" and bool(values) and not any(map(_is_any, values))


def _is_any(value: str) -> bool:
    """Every subject, every service account, every repository."""
    return not value.removeprefix("system:serviceaccount").removeprefix("repo").strip("*:")
