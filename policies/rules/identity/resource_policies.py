"""Policies of keys, secrets, queues, topics, repositories, functions and projects: no caller is everybody."""

from collections.abc import Iterator

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import GOOGLE_GRANTS, Resource, is_unknown
from policies.rules.identity.callers import limits, names_callers
from policies.rules.identity.policy_documents import bindings, is_public, statements

_KEYS = ("key:Key", "keyPolicy:KeyPolicy", "externalKey:ExternalKey", "replicaKey:ReplicaKey")
_DOCUMENTS = (
    *(f"aws:kms/{one}" for one in (*_KEYS, "replicaExternalKey:ReplicaExternalKey")),
    *("aws:sqs/queue:Queue", "aws:sqs/queuePolicy:QueuePolicy"),
    *("aws:sns/topic:Topic", "aws:sns/topicPolicy:TopicPolicy"),
    *("aws:secretsmanager/secret:Secret", "aws:secretsmanager/secretPolicy:SecretPolicy"),
    "aws:ecr/repositoryPolicy:RepositoryPolicy",
)
_PERMISSION = "aws:lambda/permission:Permission"
# Arguments of a permission, each a condition of its statement (Lambda API Reference, AddPermission).
_LIMITS = {
    "sourceAccount": "aws:sourceaccount",
    "sourceArn": "aws:sourcearn",
    "principalOrgId": "aws:principalorgid",
}
_LEVELS = tuple(
    f"gcp:{level}/iAM{form}:IAM{form}"
    for level in ("projects", "folder", "organizations")
    for form in ("Member", "Binding", "Policy")
)
_IDENTITIES = ("gcp:serviceaccount/account:Account::", "gcp:projects/serviceIdentity:ServiceIdentity::")


@CATALOG.rule(
    "MLS-IAM-09",
    "high",
    (*_DOCUMENTS, _PERMISSION, *GOOGLE_GRANTS, *_LEVELS),
    "Every account of AWS, or every user of Google, decrypts, reads or sends what such a policy allows.",
    "Name the accounts, roles or services; or add a condition on an account, an organization or a network.",
    ("CKV_AWS_33", "CKV_AWS_32", "CKV_AWS_168", "CKV_AWS_169", "CKV_AWS_301", "CKV_GCP_112"),
)
def no_caller_is_everybody(source: Resource) -> Iterator[Violation]:
    """No policy of a key, secret, queue, topic, repository, function or project is for everybody."""
    props = source.props
    if source.kind in _DOCUMENTS:
        if source.origin == "live" and source.asked is None and "policy" not in tuple(props):
            raise NotApplicableError("its policy is not read from an account; audit a state")
        for one in statements(props.get("policy"), "policy"):
            if one.allows and ("AWS", "*") in one.principals and not names_callers(one):
                yield Violation("every account of AWS is allowed", one.path)
    elif source.kind == _PERMISSION:
        given = [(key, props.get(name)) for name, key in _LIMITS.items()]
        named = any(value and limits("StringLike", key, (str(value),)) for key, value in given)
        if props.get("principal") == "*" and not named:
            yield Violation("everybody may call the function", "principal")
    else:
        yield from _public(source)


def _public(source: Resource) -> Iterator[Violation]:
    found = [("member", source.raw("member"))]
    found += [(f"members[{index}]", one) for index, one in enumerate(source.props.get("members") or ())]
    for path, binding in bindings(source.props.get("policyData"), "policyData"):
        members = enumerate(binding.get("members") or ())
        found += [(f"{path}.members[{index}]", one) for index, one in members]
    for path, member in found:
        if is_unknown(member) and _is_an_identity(source, path.partition("[")[0]):
            continue
        if is_public(member):
            yield Violation(f"{member} is everybody", path)


def _is_an_identity(source: Resource, property: str) -> bool:
    """Return whether a value that is not known yet comes from service accounts alone: it is their name."""
    urns = source.references.get(property, ())
    return bool(urns) and all(any(kind in urn for kind in _IDENTITIES) for urn in urns)
