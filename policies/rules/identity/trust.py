"""Trust policies: identities that may assume a role or use a service account."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.identity.attribute_conditions import is_limited
from policies.rules.identity.callers import is_positive, limits
from policies.rules.identity.issuers import Issuer, issuer_of, subject_is_limited
from policies.rules.identity.policy_documents import ROLE, Statement, bindings, is_public, statements
from policies.stack import Stack

_PROVIDER = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
_POLICY = "gcp:serviceaccount/iAMPolicy:IAMPolicy"
_MEMBERS = ("gcp:serviceaccount/iAMMember:IAMMember", "gcp:serviceaccount/iAMBinding:IAMBinding")
# Conditions on the account or resource that a service acts for; see "The confused deputy problem" in
# the IAM User Guide.
_OF_ACCOUNT = ("aws:sourceaccount", "aws:sourcearn", "aws:sourceorgid", "aws:sourceorgpaths")
_CALLER = ("aws:principalorgid", "aws:principalorgpaths", "aws:principalarn", "aws:principalaccount")
_ASSUMES = ("sts:assumerole", "sts:assumerolewithwebidentity", "sts:assumerolewithsaml")
# Providers without an ARN serve the applications of all (IAM User Guide, "Create a role for OpenID Connect
# federation": condition keys of Amazon Cognito, Login with Amazon, Facebook and Google).
_WEB = ("cognito-identity.amazonaws.com", "accounts.google.com", "www.amazon.com", "graph.facebook.com")
_APPLICATION = (":aud", ":app_id")


@CATALOG.rule_around(
    "MLS-IAM-04",
    "high",
    (ROLE, _PROVIDER, *_MEMBERS, _POLICY),
    "Without conditions, a service account of another team, a foreign repository, or a service on behalf"
    " of another account can assume the role.",
    "Condition it on subject and audience of the token, or on aws:SourceAccount of the service.",
    ("CKV_AWS_358", "CKV_GCP_125"),
)
def trust_is_limited(trusting: Resource, stack: Stack) -> Iterator[Violation]:
    """Trust is limited to a subject and audience, or to an account."""
    props = trusting.props
    if trusting.kind == _PROVIDER:
        yield from _provider(trusting)
    elif trusting.kind == _POLICY:
        for path, binding in bindings(props.get("policyData"), "policyData"):
            yield from _public(binding.get("members") or (), f"{path}.members")
    elif trusting.kind in _MEMBERS:
        yield from _public(props.get("members") or [props.get("member")], "member")
    else:
        for one in statements(props.get("assumeRolePolicy"), "assumeRolePolicy"):
            if one.allows and any(map(one.allows_action, _ASSUMES)):
                yield from _loose(one, stack.settings.deputies)


def _public(members: Iterable[Any], path: str) -> Iterator[Violation]:
    for member in members:
        if is_public(member) or str(member).endswith("/workloadIdentityPools/*"):
            yield Violation(f"{member} may use the service account", path)
        elif str(member).startswith("principalSet:") and str(member).endswith("/*"):
            yield Violation("every identity of the pool may use the service account", path)


def _provider(provider: Resource) -> Iterator[Violation]:
    oidc, condition = provider.props.get("oidc"), provider.props.get("attributeCondition")
    if not oidc:
        raise NotApplicableError("it names the account, or the certificates, that it trusts")
    if not condition:
        yield Violation("every identity of the issuer is accepted", "attributeCondition")
    elif not is_limited(
        str(condition), provider.props.get("attributeMapping") or {}, str(oidc.get("issuerUri") or "")
    ):
        yield Violation("its condition also admits identities of strangers", "attributeCondition")


def _loose(one: Statement, deputies: tuple[str, ...]) -> Iterator[Violation]:
    found = list(one.conditions())
    limited = {key for operator, key, values in found if limits(operator, key, values)}
    for kind, principal in one.principals:
        if principal == "*" and kind != "Service" and not limited & {*_CALLER, *_OF_ACCOUNT}:
            yield Violation("every account of AWS may assume it", one.path)
        elif kind == "Service" and _is_deputy(principal, deputies) and not limited & set(_OF_ACCOUNT):
            message = f"{principal} may assume it for any account"
            yield Violation(message, one.path, "Condition it on aws:SourceAccount.")
        elif kind == "Federated" and ":oidc-provider/" in principal:
            yield from _federated(one, principal, found)
        elif kind == "Federated" and principal in _WEB:
            named = [(operator, values) for operator, key, values in found if key.endswith(_APPLICATION)]
            if not any(_names(operator, values, None) for operator, values in named):
                yield Violation(f"it has no condition on the application of {principal}", one.path)


def _is_deputy(principal: str, deputies: tuple[str, ...]) -> bool:
    return any(fnmatchcase(one, principal.lower()) for one in deputies)


def _federated(
    one: Statement, provider: str, found: list[tuple[str, str, tuple[str, ...]]]
) -> Iterator[Violation]:
    issuer = issuer_of(provider)
    for suffix, what in ((":sub", "subject"), (":aud", "audience")):
        named = [(operator, values) for operator, key, values in found if key.endswith(suffix)]
        if not any(
            _names(operator, values, issuer if suffix == ":sub" else None) for operator, values in named
        ):
            given = ", ".join(value for _, values in named for value in values)
            but = f" but {given}, which strangers satisfy" if given else ""
            yield Violation(f"it has no condition on the {what} of {provider}{but}", one.path)


def _names(operator: str, values: tuple[str, ...], issuer: Issuer | None) -> bool:
    """Return whether a condition names audiences, or subjects of an issuer."""
    if not is_positive(operator) or not values:
        return False
    if issuer is None:
        return all(value.strip("*?:") for value in values)
    return all(subject_is_limited(issuer, value) for value in values)
