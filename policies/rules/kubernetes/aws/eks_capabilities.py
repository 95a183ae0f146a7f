"""EKS capabilities: controllers that AWS runs outside of the cluster, and the resources that they create."""

from collections.abc import Iterator

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.identity.policy_documents import ROLE, Statement, grants
from policies.stack import Stack

_CAPABILITY = "aws:eks/capability:Capability"
# With these an identity gives itself any other right.
_OF_IDENTITIES = ("iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:PassRole")
_BROAD = ("AdministratorAccess", "PowerUserAccess", "IAMFullAccess")


@CATALOG.rule(
    "MLS-K8S-10",
    "medium",
    (_CAPABILITY,),
    "EKS always deletes a capability with RETAIN: its resources stay, are billed, and are unmanaged.",
    "Set protect in its resource options; delete its resources before you unprotect and delete it.",
    (
        "EKS API Reference, DeleteCapability",
        "pulumi-aws 7.51.1 aws:eks/capability:Capability, deletePropagationPolicy",
    ),
)
def capabilities_are_protected(capability: Resource) -> Iterator[Violation]:
    """A capability of EKS, whose resources outlive it, is protected from deletion."""
    if capability.props.get("deletePropagationPolicy") not in (None, "RETAIN"):
        raise NotApplicableError("its resources are deleted with it")
    if not capability.protect:
        kind = capability.props.get("type")
        yield Violation(f"its deletion leaves the resources of its {kind}", "deletePropagationPolicy")


@CATALOG.rule_around(
    "MLS-IAM-08",
    "high",
    (_CAPABILITY,),
    "Users who can create ACK objects in the cluster act with the role of the capability: with that of"
    " the quick start, as an administrator of the account.",
    "Give it a policy for its services, or IAMRoleSelectors for namespaces.",
    ("EKS User Guide, ack-create-eksctl, create-ack-capability and capabilities-security",),
)
def capabilities_are_no_administrators(capability: Resource, stack: Stack) -> Iterator[Violation]:
    """The role of an EKS capability is not an administrator of the account."""
    owner = stack.target(capability, "roleArn", ROLE)
    if owner is None:
        raise UndeterminedError("its role is not in this stack")
    for grant in grants(owner, stack):
        if grant.managed in _BROAD:
            yield Violation(f"its role has the policy {grant.managed}", "roleArn")
        if any(map(_is_everything, grant.statements)):
            yield Violation("its role allows everything", "roleArn")


def _is_everything(statement: Statement) -> bool:
    whole = statement.allows and all(map(statement.allows_action, _OF_IDENTITIES))
    return statement.is_everything or whole
