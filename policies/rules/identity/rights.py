"""What identities may do."""

from collections.abc import Iterator
from typing import Any

from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules.identity.documents import (
    ATTACHMENT,
    POLICY,
    ROLE,
    ROLE_ATTACHMENT,
    ROLE_POLICY,
    Grant,
    Statement,
    grants,
    managed_name,
    statements,
)
from policies.rules.walking import each
from policies.settings import Settings
from policies.stack import Stack

_OTHERS = ("aws:iam/userPolicy:UserPolicy", "aws:iam/groupPolicy:GroupPolicy")
_ATTACHMENTS = (
    *(ROLE_ATTACHMENT, ATTACHMENT, "aws:iam/userPolicyAttachment:UserPolicyAttachment"),
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment",
)
_GOOGLE = tuple(
    f"gcp:{level}/{form}:{form[0].upper()}{form[1:]}"
    for level in ("projects", "folder", "organizations")
    for form in ("iAMMember", "iAMBinding")
)
_EVERYTHING = ("AdministratorAccess",)
_GOOGLES_OWN = "@cloudservices.gserviceaccount.com"
_OWN_ROLE = "/iAMCustomRole:IAMCustomRole::"
_OWNERS = ("roles/owner", "roles/editor")


@CATALOGUE.rule_around(
    About(
        "MLS-IAM-01",
        "critical",
        (POLICY, ROLE_POLICY, *_OTHERS, ROLE, *_ATTACHMENTS, *_GOOGLE),
        "Whoever gets hold of such an identity owns the account: every dataset, every key, every log.",
        "Name the actions and resources that are needed; in Google Cloud, take a predefined role.",
        ("CKV_AWS_62", "CKV_AWS_63"),
    )
)
def nobody_may_do_everything(source: Resource, stack: Stack) -> Iterator[Violation]:
    """No policy allows every action on every resource."""
    props = source.props
    if source.kind in _GOOGLE:
        if _is_of_the_stack(source) or props.get("role") not in _OWNERS:
            return
        members = [str(one) for one in props.get("members") or [props.get("member")]]
        # Google's own agent has this role in every project, and deployments of Google need it.
        if not all(one.endswith(_GOOGLES_OWN) for one in members):
            yield Violation(f"{props['role']} may change everything", "role")
    elif source.kind in _ATTACHMENTS:
        if managed_name(props.get("policyArn")) in _EVERYTHING:
            yield Violation("AdministratorAccess is attached", "policyArn")
    elif source.kind == ROLE:
        for path, inline in each(props, "inlinePolicies"):
            yield from _everything(statements(inline.get("policy"), f"{path}.policy"))
        for index, value in enumerate(props.get("managedPolicyArns") or ()):
            if managed_name(value) in _EVERYTHING:
                yield Violation("AdministratorAccess is attached", f"managedPolicyArns[{index}]")
    else:
        found = list(_everything(statements(props.get("policy"), "policy")))
        if found and source.kind == POLICY and _only_bounds(source, stack):
            raise NotApplicableError("it is a permissions boundary, which grants nothing")
        yield from found


def _is_of_the_stack(binding: Resource) -> bool:
    """Whether its role is one that the stack makes, which grants what it lists, however it will be called."""
    made = any(_OWN_ROLE in urn for urn in binding.references.get("role", ()))
    return made and is_unknown(binding.raw("role"))


def _everything(found: list[Statement]) -> Iterator[Violation]:
    for one in found:
        if one.is_everything:
            but = f" but {', '.join(one.not_actions)}" if one.not_actions else ""
            yield Violation(f"it allows every action{but} on every resource", one.path)


def _only_bounds(policy: Resource, stack: Stack) -> bool:
    """Whether a policy limits identities of the stack, and is attached to none."""
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


@CATALOGUE.rule_around(
    About(
        "MLS-IAM-02",
        "high",
        (ROLE, _GKE, _NODE_POOL),
        "Every pod on a node can become the node: rights to data belong to one service account, not to all.",
        "Give data rights by EKS Pod Identity, IRSA or Workload Identity, and take them from the nodes.",
        ("CIS EKS 5.2.1", "CIS GKE 5.2.2", "CKV_GCP_69"),
    )
)
def data_is_for_pods_not_nodes(source: Resource, stack: Stack) -> Iterator[Violation]:
    """Pods have identities of their own, and those of nodes reach no data."""
    if source.kind == ROLE:
        if not _is_of_nodes(source, stack):
            raise NotApplicableError("it is not the role of nodes of EKS")
        for grant in grants(source, stack):
            yield from _data(grant, stack.settings)
        return
    if source.kind == _GKE and source.props.get("enableAutopilot") is not True:
        pool = [one.get("workloadPool") for _, one in each(source.props, "workloadIdentityConfig")]
        if not any(pool):
            said = "pods have the identity of their node"
            yield Violation(said, "workloadIdentityConfig.workloadPool")
    for keys in (("nodeConfig",), ("nodePools", "nodeConfig")):
        for path, metadata in each(source.props, *keys, "workloadMetadataConfig"):
            # Unset, it is GKE_METADATA where the cluster has Workload Identity.
            if metadata.get("mode") == "GCE_METADATA":
                yield Violation("pods get the credentials of their node", f"{path}.mode")


def _is_of_nodes(role: Resource, stack: Stack) -> bool:
    # EC2_LINUX, EC2_WINDOWS and EC2 (Auto Mode) are the types of nodes.
    entries = _users(role, stack, _ENTRY, "principalArn")
    return (
        any(_users(role, stack, _NODES, "nodeRoleArn"))
        or any(_users(role, stack, _EKS, "computeConfig.nodeRoleArn"))
        or any(str(one.props.get("type") or "STANDARD").startswith("EC2") for one in entries)
    )


def _users(role: Resource, stack: Stack, kind: str, name: str) -> list[Resource]:
    """Those that have the role, also where a source only tells that their property comes from it."""
    told = stack.once(_by_source, kind, name.partition(".")[0])
    return told.get(role.urn) or list(stack.users(role, kind, name))


def _by_source(stack: Stack, kind: str, name: str) -> dict[str, list[Resource]]:
    """Resources of a kind by the URNs of those from which a property of theirs comes."""
    found: dict[str, list[Resource]] = {}
    for one in stack.all(kind):
        for urn in dict.fromkeys(one.references.get(name, ())):
            found.setdefault(urn, []).append(one)
    return found


def _data(grant: Grant, settings: Settings) -> Iterator[Violation]:
    if grant.managed.startswith(settings.data_policies):
        said = f"the role of nodes has {grant.managed}"
        yield Violation(said, grant.path, resource=grant.source)
    elif grant.managed and not grant.managed.startswith(settings.node_policies):
        raise UndeterminedError(f"what {grant.managed} of AWS grants")
    for one in grant.statements:
        reached = [action for action in one.actions if _service(action) in (*settings.data_services, "*")]
        if one.allows and (reached or one.not_actions):
            shown = ", ".join(reached) or f"all but {', '.join(one.not_actions)}"
            yield Violation(f"the role of nodes may {shown}", one.path, resource=grant.source)


def _service(action: str) -> str:
    return action.partition(":")[0].lower()


_KEYS: dict[str, Any] = {
    "aws:iam/accessKey:AccessKey": ("status", "Inactive"),
    "gcp:serviceaccount/key:Key": ("", ""),
    "gcp:storage/hmacKey:HmacKey": ("state", "INACTIVE"),
}


@CATALOGUE.rule_of_stack(
    About(
        "MLS-IAM-03",
        "critical",
        (*_KEYS, ROLE, "aws:iam/user:User", "gcp:serviceaccount/account:Account"),
        "A key that never ends is copied into notebooks, images and logs, and works from anywhere.",
        "Use roles: Pod Identity, IRSA or Workload Identity in clusters, OpenID Connect in pipelines.",
    )
)
def there_are_no_static_keys(stack: Stack) -> Iterator[Violation]:
    """No user or service account has a key that works until somebody deletes it."""
    for kind, (name, off) in _KEYS.items():
        for key in stack.all(kind):
            if not name or key.props.get(name) != off:
                yield Violation("the key works until somebody deletes it", resource=key)
