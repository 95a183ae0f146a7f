"""Permissions of identities."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules.identity.policy_documents import (
    ATTACHMENT,
    POLICY,
    ROLE,
    ROLE_ATTACHMENT,
    ROLE_POLICY,
    Grant,
    Statement,
    bindings,
    grants,
    managed_name,
    statements,
)
from policies.rules.properties import each
from policies.settings import RuleSettings
from policies.stack import Stack

_OTHERS = ("aws:iam/userPolicy:UserPolicy", "aws:iam/groupPolicy:GroupPolicy")
_ATTACHMENTS = (
    *(ROLE_ATTACHMENT, ATTACHMENT, "aws:iam/userPolicyAttachment:UserPolicyAttachment"),
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment",
)
# All policies of an identity, and those of a permission set, which becomes a role in each account.
_LISTS = tuple(
    f"aws:iam/{one}PolicyAttachmentsExclusive:{one.capitalize()}PolicyAttachmentsExclusive"
    for one in ("role", "user", "group")
)
_SET_POLICY = "aws:ssoadmin/permissionSetInlinePolicy:PermissionSetInlinePolicy"
_SET_ATTACHMENT = "aws:ssoadmin/managedPolicyAttachment:ManagedPolicyAttachment"
_GOOGLE_POLICIES = tuple(f"gcp:{one}/iAMPolicy:IAMPolicy" for one in ("projects", "folder", "organizations"))
_GOOGLE = tuple(
    f"gcp:{level}/{form}:{form[0].upper()}{form[1:]}"
    for level in ("projects", "folder", "organizations")
    for form in ("iAMMember", "iAMBinding")
)
# PowerUserAccess allows all actions but those of IAM and Organizations: every dataset, every key, every log.
_EVERYTHING = ("AdministratorAccess", "PowerUserAccess")
_GOOGLES_OWN = "@cloudservices.gserviceaccount.com"
_OWN_ROLE = "/iAMCustomRole:IAMCustomRole::"
_OWNERS = ("roles/owner", "roles/editor")


@CATALOG.rule_around(
    "MLS-IAM-01",
    "critical",
    (
        *(POLICY, ROLE_POLICY, *_OTHERS, ROLE, *_ATTACHMENTS, *_LISTS, _SET_POLICY, _SET_ATTACHMENT),
        *(*_GOOGLE, *_GOOGLE_POLICIES),
    ),
    "An attacker with such an identity controls the account: every dataset, every key, every log.",
    "Name the actions and resources that are needed; in Google Cloud, take a predefined role.",
    ("CKV_AWS_62", "CKV_AWS_274"),
)
def no_policy_allows_everything(source: Resource, stack: Stack) -> Iterator[Violation]:
    """No policy allows every action on every resource, or all but some."""
    props = source.props
    if source.kind in _GOOGLE:
        if _is_of_the_stack(source) or props.get("role") not in _OWNERS:
            return
        if _has_others(props.get("members") or [props.get("member")]):
            yield Violation(f"{props['role']} may change everything", "role")
    elif source.kind in _GOOGLE_POLICIES:
        for path, binding in bindings(props.get("policyData"), "policyData"):
            if binding.get("role") in _OWNERS and _has_others(binding.get("members") or ()):
                yield Violation(f"{binding['role']} may change everything", f"{path}.role")
    elif source.kind in (*_ATTACHMENTS, *_LISTS, _SET_ATTACHMENT, ROLE):
        yield from _attached(props)
        for path, inline in each(props, "inlinePolicies"):
            yield from _everything(statements(inline.get("policy"), f"{path}.policy"))
    elif source.kind == _SET_POLICY:
        yield from _everything(statements(props.get("inlinePolicy"), "inlinePolicy"))
    else:
        found = list(_everything(statements(props.get("policy"), "policy")))
        if found and source.kind == POLICY and _only_bounds(source, stack):
            raise NotApplicableError("it is a permissions boundary, which grants nothing")
        yield from found


def _has_others(members: Iterable[Any]) -> bool:
    """The service agent of Google has these roles in every project, and needs them for deployments."""
    return not all(str(one).endswith(_GOOGLES_OWN) for one in members)


def _attached(props: Any) -> Iterator[Violation]:
    for key in ("policyArn", "managedPolicyArn"):
        if (name := managed_name(props.get(key))) in _EVERYTHING:
            yield Violation(f"{name} is attached", key)
    for key in ("policyArns", "managedPolicyArns"):
        for index, value in enumerate(props.get(key) or ()):
            if (name := managed_name(value)) in _EVERYTHING:
                yield Violation(f"{name} is attached", f"{key}[{index}]")


def _is_of_the_stack(binding: Resource) -> bool:
    """Return whether its role is a custom role of the stack, whose name is not known yet."""
    made = any(_OWN_ROLE in urn for urn in binding.references.get("role", ()))
    return made and is_unknown(binding.raw("role"))


def _everything(found: list[Statement]) -> Iterator[Violation]:
    for one in found:
        if one.is_everything:
            but = f" but {', '.join(one.not_actions)}" if one.not_actions else ""
            beside = f" but {', '.join(one.not_resources)}" if one.not_resources else ""
            yield Violation(f"it allows every action{but} on every resource{beside}", one.path)


def _only_bounds(policy: Resource, stack: Stack) -> bool:
    """Return whether a policy is a permissions boundary in the stack, and attached to no identity."""
    bounds = any(
        any(stack.users(policy, kind, "permissionsBoundary")) for kind in (ROLE, "aws:iam/user:User")
    )
    return bounds and not any(any(stack.users(policy, kind, "policyArn")) for kind in _ATTACHMENTS)


_EKS, _NODES, _ENTRY = (
    "aws:eks/cluster:Cluster",
    "aws:eks/nodeGroup:NodeGroup",
    "aws:eks/accessEntry:AccessEntry",
)
_GKE, _NODE_POOL = "gcp:container/cluster:Cluster", "gcp:container/nodePool:NodePool"


@CATALOG.rule_around(
    "MLS-IAM-02",
    "high",
    (ROLE, _NODES, _GKE, _NODE_POOL),
    "Every pod on a node can use its identity: grant data access to one service account, not to all.",
    "Grant data access by EKS Pod Identity, IRSA or Workload Identity, and remove it from the nodes.",
    ("CIS EKS 5.2.1", "CIS GKE 5.2.2", "CKV_GCP_69"),
)
def data_is_for_pods_not_nodes(source: Resource, stack: Stack) -> Iterator[Violation]:
    """Pods have identities of their own, and those of nodes have no data access."""
    if source.kind == ROLE:
        if not _is_of_nodes(source, stack):
            raise NotApplicableError("it is not the role of nodes of EKS")
        for grant in grants(source, stack):
            yield from _data(grant, stack.settings)
        return
    if source.kind == _NODES:
        if stack.target(source, "nodeRoleArn", ROLE) is None:
            raise UndeterminedError("its role is not in this stack")
        raise NotApplicableError("its role is judged itself")
    if source.kind == _GKE and source.props.get("enableAutopilot") is not True:
        pool = [one.get("workloadPool") for _, one in each(source.props, "workloadIdentityConfig")]
        if not any(pool):
            message = "pods have the identity of their node"
            yield Violation(message, "workloadIdentityConfig.workloadPool")
    modes = set()
    for keys in (("nodeConfig",), ("nodePools", "nodeConfig")):
        for path, metadata in each(source.props, *keys, "workloadMetadataConfig"):
            modes.add(metadata.get("mode"))
            if metadata.get("mode") == "GCE_METADATA":
                yield Violation("pods get the credentials of their node", f"{path}.mode")
    # Unset, it is GKE_METADATA where the cluster has Workload Identity, for which the cluster is judged.
    unset = source.kind == _NODE_POOL and modes <= {None, "", "MODE_UNSPECIFIED"}
    if unset and stack.target(source, "cluster", _GKE) is None:
        raise UndeterminedError("its cluster is not in this stack, and it does not set the mode itself")


def _is_of_nodes(role: Resource, stack: Stack) -> bool:
    # EC2_LINUX, EC2_WINDOWS and EC2 (Auto Mode) are the types of nodes.
    entries = _users(role, stack, _ENTRY, "principalArn")
    return (
        any(_users(role, stack, _NODES, "nodeRoleArn"))
        or any(_users(role, stack, _EKS, "computeConfig.nodeRoleArn"))
        or any(str(one.props.get("type") or "STANDARD").startswith("EC2") for one in entries)
    )


def _users(role: Resource, stack: Stack, kind: str, name: str) -> list[Resource]:
    """Resources with the role, also those of which the source only has the reference."""
    users = stack.once(_by_source, kind, name.partition(".")[0])
    return users.get(role.urn) or list(stack.users(role, kind, name))


def _by_source(stack: Stack, kind: str, name: str) -> dict[str, list[Resource]]:
    found: dict[str, list[Resource]] = {}
    for one in stack.all(kind):
        for urn in dict.fromkeys(one.references.get(name, ())):
            found.setdefault(urn, []).append(one)
    return found


def _data(grant: Grant, settings: RuleSettings) -> Iterator[Violation]:
    if grant.managed.startswith(settings.data_policies):
        message = f"the role of nodes has {grant.managed}"
        yield Violation(message, grant.path, resource=grant.source)
    elif grant.managed and not grant.managed.startswith(settings.node_policies):
        raise UndeterminedError(f"the permissions of {grant.managed} of AWS are not known")
    for one in grant.statements:
        reached = [action for action in one.actions if any(_is_of(action, settings.data_services))]
        spared = {service for action in one.not_actions for service in _whole(action, settings.data_services)}
        if one.allows and (reached or (one.inverts_actions and set(settings.data_services) - spared)):
            shown = ", ".join(reached) or f"all but {', '.join(one.not_actions)}"
            yield Violation(f"the role of nodes may {shown}", one.path, resource=grant.source)


def _is_of(action: str, services: tuple[str, ...]) -> Iterator[bool]:
    """For each service whether an action, which may contain wildcards, is one of its actions."""
    named = action.partition(":")[0].lower()
    yield from (fnmatchcase(service, named) for service in services)


def _whole(action: str, services: tuple[str, ...]) -> list[str]:
    """The services of which a pattern matches every action."""
    if action.partition(":")[2].strip("*"):
        return []
    return [service for service, own in zip(services, _is_of(action, services), strict=True) if own]


_KEYS: dict[str, Any] = {
    "aws:iam/accessKey:AccessKey": ("status", "Inactive"),
    "gcp:serviceaccount/key:Key": ("", ""),
    "gcp:storage/hmacKey:HmacKey": ("state", "INACTIVE"),
}


@CATALOG.rule_of_stack(
    "MLS-IAM-03",
    "critical",
    (*_KEYS, ROLE, "aws:iam/user:User", "gcp:serviceaccount/account:Account"),
    "A key without expiry is copied into notebooks, images and logs, and works from anywhere.",
    "Use roles: Pod Identity, IRSA or Workload Identity in clusters, OpenID Connect in pipelines.",
)
def there_are_no_static_keys(stack: Stack) -> Iterator[Violation]:
    """No user or service account has a key without expiry."""
    for kind, (name, off) in _KEYS.items():
        for key in stack.all(kind):
            if not name or key.props.get(name) != off:
                yield Violation("the key never expires", resource=key)
