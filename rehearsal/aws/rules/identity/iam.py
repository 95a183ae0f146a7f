"""Policy documents: their grammar, and the existence of their principals."""

import re
from collections.abc import Iterator

from rehearsal.aws.rules import documents
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import document, many
from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation

_MOTO = "moto 5.2.5 moto/iam/policy_validation.py"
_SIZES = "moto 5.2.5 moto/iam/models.py (_policy_size_quota, _role_policy_size_quota)"
_MALFORMED = "MalformedPolicyDocument"
_VERSIONS = ("2012-10-17", "2008-10-17")
_TOP = {"Version", "Id", "Statement"}
_ELEMENTS = {
    "Sid",
    "Effect",
    "Principal",
    "NotPrincipal",
    "Action",
    "NotAction",
    "Resource",
    "NotResource",
    "Condition",
}
_CONDITIONS = re.compile(
    r"(For(?:AnyValue|AllValues):)?"
    r"(String(Not)?Equals(IgnoreCase)?|String(Not)?Like|Numeric(Not)?Equals|Numeric(Less|Greater)Than(Equals)?"
    r"|Date(Not)?Equals|Date(Less|Greater)Than(Equals)?|Bool|BinaryEquals|(Not)?IpAddress"
    r"|Arn(Not)?(Equals|Like)|Null)(IfExists)?"
)
_ACTION = re.compile(r"\*|(\*|[A-Za-z0-9-]+):[A-Za-z0-9*?]+")
_PRINCIPAL = re.compile(
    r"\*|\d{12}|arn:aws[a-z-]*:(iam|sts)::(\d{12}|aws):\S+|A[A-Z0-9]{15,}"
    # pulumi-aws 7.51.1 docstring of aws.cloudfront.OriginAccessIdentity (iam_arn)
    r"|arn:aws[a-z-]*:iam::cloudfront:user/CloudFront Origin Access Identity [A-Z0-9]+"
)
_PRINCIPAL_KINDS = {"AWS", "Service", "Federated", "CanonicalUser"}
_RESOURCE = re.compile(r"\*|arn:(aws[a-z*-]*|\*):.*")
_PAIRS = (("Action", "NotAction"), ("Principal", "NotPrincipal"), ("Resource", "NotResource"))
_ROLE, _SID = "aws:iam/role:Role", re.compile(r"[0-9A-Za-z]*")
_INLINE, _MANAGED = 10240, 6144


def _violation(path: str, index: int, problem: str, fix: str = "") -> Violation:
    return Violation(path, f"statement {index}: {problem}", fix, _MALFORMED)


@BOOK.rule("AWS-IAM-001", *documents.ALL, source=_MOTO)
def document_is_json(inputs: Properties) -> Iterator[Violation]:
    """A policy document is a JSON object of Version, Id and at least one Statement."""
    found = documents.given(inputs)
    if found is None:
        return
    path, policy = found[0], document(found[1])
    if not isinstance(policy, dict):
        yield Violation(path, "it is not JSON, or no JSON object", "", _MALFORMED)
        return
    for strange in sorted(set(policy) - _TOP):
        yield Violation(path, f"unknown element {strange}", "", _MALFORMED)
    if not policy.get("Statement"):
        yield Violation(path, "it has no Statement", "", _MALFORMED)


@BOOK.rule("AWS-IAM-002", *documents.ALL, source=_MOTO)
def document_version(inputs: Properties) -> Iterator[Violation]:
    """The version of a policy is 2012-10-17 or 2008-10-17."""
    found = documents.given(inputs)
    policy = document(found[1]) if found else None
    if found and isinstance(policy, dict) and policy.get("Version", _VERSIONS[0]) not in _VERSIONS:
        yield Violation(found[0], f"Version must be {_VERSIONS[0]}", "", _MALFORMED)


@BOOK.rule("AWS-IAM-003", *documents.ALL, source=_MOTO)
def statement_elements(inputs: Properties) -> Iterator[Violation]:
    """A statement has known elements only."""
    for path, index, statement in documents.statements(inputs):
        for strange in sorted(set(statement) - _ELEMENTS):
            yield _violation(path, index, f"unknown element {strange}", "Mind the case of its letters.")


@BOOK.rule("AWS-IAM-004", *documents.ALL, source="IAM User Guide, reference_policies_elements_effect")
def statement_effect(inputs: Properties) -> Iterator[Violation]:
    """A statement's effect is Allow or Deny."""
    for path, index, statement in documents.statements(inputs):
        if statement.get("Effect") not in ("Allow", "Deny"):
            yield _violation(path, index, f"Effect must be Allow or Deny, not {statement.get('Effect')!r}")


@BOOK.rule("AWS-IAM-005", *documents.ALL, source=_MOTO)
def opposites_exclude_each_other(inputs: Properties) -> Iterator[Violation]:
    """A statement has an element or its opposite."""
    for path, index, statement in documents.statements(inputs):
        for one, other in _PAIRS:
            if one in statement and other in statement:
                yield _violation(path, index, f"{one} and {other} exclude each other")


@BOOK.rule("AWS-IAM-006", *documents.ALL, source=_MOTO)
def statement_actions(inputs: Properties) -> Iterator[Violation]:
    """A statement has actions of the form service:Name."""
    for path, index, statement in documents.statements(inputs):
        actions = (*many(statement.get("Action")), *many(statement.get("NotAction")))
        if not actions:
            yield _violation(path, index, "it has no Action")
        for action in actions:
            if not isinstance(action, str) or not _ACTION.fullmatch(action):
                yield _violation(path, index, f"{action!r} is not an action", "Write it as service:Name.")


@BOOK.rule("AWS-IAM-007", *documents.ALL, source=_MOTO)
def statement_resources(inputs: Properties) -> Iterator[Violation]:
    """A resource of a statement is an ARN or *."""
    for path, index, statement in documents.statements(inputs):
        for resource in (*many(statement.get("Resource")), *many(statement.get("NotResource"))):
            if not isinstance(resource, str) or not _RESOURCE.fullmatch(resource):
                yield _violation(path, index, f"{resource!r} is not an ARN")


@BOOK.rule("AWS-IAM-008", *documents.IDENTITY, source=_MOTO)
def identities_need_resources(inputs: Properties) -> Iterator[Violation]:
    """A policy of an identity has resources."""
    for path, index, statement in documents.statements(inputs):
        if "Resource" not in statement and "NotResource" not in statement:
            yield _violation(path, index, "it has no Resource", "Use * for all.")


@BOOK.rule("AWS-IAM-009", *documents.IDENTITY, source="hashicorp/terraform issue 13449")
def identities_name_no_principal(inputs: Properties) -> Iterator[Violation]:
    """A policy of an identity names no principal."""
    for path, index, statement in documents.statements(inputs):
        if "Principal" in statement or "NotPrincipal" in statement:
            yield _violation(path, index, "a policy of an identity may name no Principal", "Leave it out.")


@BOOK.rule("AWS-IAM-010", *documents.RESOURCE, source="terraform-aws-modules/terraform-aws-iam issue 420")
def resources_name_a_principal(inputs: Properties) -> Iterator[Violation]:
    """A policy of a resource and a trust policy name a principal."""
    for path, index, statement in documents.statements(inputs):
        if "Principal" not in statement and "NotPrincipal" not in statement:
            yield _violation(path, index, "it names no Principal")


@BOOK.rule(
    "AWS-IAM-011",
    *documents.RESOURCE,
    source="pulumi-aws 7.51.1 docstring of aws.iam.getPolicyDocument (principals)",
)
def principal_form(inputs: Properties) -> Iterator[Violation]:
    """A principal is *, or an object of AWS, Service, Federated and CanonicalUser."""
    for path, index, statement in documents.statements(inputs):
        principal = statement.get("Principal", statement.get("NotPrincipal"))
        if principal is None or principal == "*":
            continue
        if not isinstance(principal, dict):
            yield _violation(path, index, "Principal must be * or an object")
            continue
        for strange in sorted(set(principal) - _PRINCIPAL_KINDS):
            yield _violation(path, index, f"unknown kind of Principal {strange}")
        for value in many(principal.get("AWS")):
            if not isinstance(value, str) or not _PRINCIPAL.fullmatch(value):
                yield _violation(path, index, f"invalid principal {value!r}", "Use an account id or an ARN.")
        for value in many(principal.get("Service")):
            if not isinstance(value, str) or "." not in value:
                yield _violation(
                    path, index, f"invalid service principal {value!r}", "Use service.amazonaws.com."
                )


@BOOK.rule("AWS-IAM-012", *documents.ALL, source=_MOTO)
def statement_conditions(inputs: Properties) -> Iterator[Violation]:
    """A condition is an object of known operators, each an object of keys and values."""
    for path, index, statement in documents.statements(inputs):
        condition = statement.get("Condition", {})
        if not isinstance(condition, dict):
            yield _violation(path, index, "Condition must be an object")
            continue
        for operator, keys in condition.items():
            if not isinstance(keys, dict):
                yield _violation(path, index, f"condition {operator} must be an object of keys and values")
            elif keys and not _CONDITIONS.fullmatch(operator):
                yield _violation(path, index, f"there is no condition operator {operator}")


@BOOK.rule("AWS-IAM-013", *documents.IDENTITY, source=_MOTO)
def statement_ids_differ(inputs: Properties) -> Iterator[Violation]:
    """The statement ids (Sid) of a policy of an identity differ."""
    taken: set[str] = set()
    for path, index, statement in documents.statements(inputs):
        sid = statement.get("Sid")
        if sid and sid in taken:
            yield _violation(path, index, f"Sid {sid} is taken", "Give each statement its own.")
        taken.add(str(sid))


@BOOK.rule_around("AWS-IAM-014", *documents.RESOURCE, source="hashicorp/terraform-provider-aws issue 8905")
def principals_exist(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The roles and users of this account that a policy names exist."""
    if site.preview:
        return
    for path, arn in documents.principal_arns(inputs):
        kind = arn.rpartition(":")[2].partition("/")[0]
        ours = arn.startswith(f"arn:aws:iam::{site.account}:") and "*" not in arn
        checkable = ours and kind in ("role", "user") and "/aws-service-role/" not in arn
        if checkable and not site.exists(arn):
            yield Violation(
                path,
                f'Invalid principal in policy: "AWS":"{arn}"',
                "The role or user must exist before a policy names it.",
                _MALFORMED,
            )


def _too_long(inputs: Properties, most: int) -> Iterator[Violation]:
    policy = inputs.get("policy")
    size = len("".join(policy.split())) if isinstance(policy, str) else 0
    if size > most:
        yield Violation("policy", f"{size} characters, but at most {most} are allowed", "", "LimitExceeded")


@BOOK.rule("AWS-IAM-015", "aws:iam/policy:Policy", source=_SIZES)
def managed_policy_size(inputs: Properties) -> Iterator[Violation]:
    """A managed policy has at most 6144 characters besides white space."""
    yield from _too_long(inputs, _MANAGED)


@BOOK.rule("AWS-IAM-016", "aws:iam/rolePolicy:RolePolicy", source=_SIZES)
def inline_policy_size(inputs: Properties) -> Iterator[Violation]:
    """The inline policies of a role have at most 10240 characters besides white space."""
    yield from _too_long(inputs, _INLINE)


@BOOK.rule(
    "AWS-IAM-019",
    _ROLE,
    source=f"terraform-aws-modules/terraform-aws-eks-pod-identity issue 34 (text); {_MOTO}",
)
def trust_names_no_resource(inputs: Properties) -> Iterator[Violation]:
    """A trust policy names no resource: it is about its role."""
    for path, index, statement in documents.statements(inputs):
        for name in ("Resource", "NotResource"):
            if name in statement:
                yield _violation(path, index, f"Has prohibited field {name}", "Leave it out.")


@BOOK.rule("AWS-IAM-020", _ROLE, source=f"getmoto/moto issue 5750 (text of CreateRole); {_MOTO}")
def trust_is_about_sts(inputs: Properties) -> Iterator[Violation]:
    """The actions of a trust policy are those of STS."""
    for path, index, statement in documents.statements(inputs):
        for action in many(statement.get("Action")):
            service, colon, _ = str(action).partition(":")
            if colon and "*" not in service and service.lower() != "sts":
                problem = f"AssumeRole policy may only specify STS AssumeRole actions, not {action}"
                yield _violation(path, index, problem, "Give other rights in a policy of the role.")


@BOOK.rule(
    "AWS-IAM-021",
    *documents.IDENTITY,
    source="aws-cloudformation/cfn-lint issues 708 and 1376 (text); thinkinglabs/aws-iam-policy issue 5 "
    "(policies of buckets and keys take other letters)",
)
def statement_id_form(inputs: Properties) -> Iterator[Violation]:
    """The statement ids (Sid) of a policy of an identity are letters and digits."""
    for path, index, statement in documents.statements(inputs):
        sid = statement.get("Sid")
        if isinstance(sid, str) and not _SID.fullmatch(sid):
            yield _violation(
                path, index, f"Statement IDs (SID) must be alpha-numeric: {sid!r}", "Use A-Z, a-z and 0-9."
            )
