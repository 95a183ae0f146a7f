"""EKS capabilities: controllers that AWS runs outside of the cluster, and what they make by themselves."""

from collections.abc import Iterator
from typing import Any

from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.identity.documents import Statement, statements
from policies.stack import Stack

_CAPABILITY, _ROLE = "aws:eks/capability:Capability", "aws:iam/role:Role"
_ATTACHED = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
_INLINE = "aws:iam/rolePolicy:RolePolicy"
_POLICY_LIST = "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive"
_BROAD = ("AdministratorAccess", "PowerUserAccess", "IAMFullAccess")


@CATALOGUE.rule(
    About(
        "MLS-K8S-10",
        "medium",
        (_CAPABILITY,),
        "EKS deletes a capability in one way, RETAIN: what it made stays, is billed, and nobody manages it.",
        "Set protect in its resource options; delete what it made before you unprotect and delete it.",
        (
            "EKS API Reference, DeleteCapability",
            "pulumi-aws 7.51.1 aws:eks/capability:Capability, deletePropagationPolicy",
        ),
    )
)
def capabilities_are_not_deleted_in_passing(capability: Resource) -> Iterator[Violation]:
    """A capability of EKS, of which everything that it made is left behind, cannot be deleted in passing."""
    if capability.props.get("deletePropagationPolicy") not in (None, "RETAIN"):
        raise NotApplicableError("what it made goes with it")
    if not capability.protect:
        kind = capability.props.get("type")
        yield Violation(f"destroying it leaves behind what its {kind} made", "deletePropagationPolicy")


@CATALOGUE.rule_around(
    About(
        "MLS-IAM-08",
        "high",
        (_CAPABILITY,),
        "Whoever can make objects of ACK in the cluster acts with the role of the capability: with that of"
        " the quick start, as an administrator of the account.",
        "Give it a policy of the services that it is for, or IAMRoleSelectors for namespaces.",
        ("EKS User Guide, ack-create-eksctl, create-ack-capability and capabilities-security",),
    )
)
def capabilities_are_no_administrators(capability: Resource, stack: Stack) -> Iterator[Violation]:
    """The role of an EKS capability is not an administrator of the account."""
    owner = next((one for one in stack.all(_ROLE) if _is_used(one, capability, stack)), None)
    if owner is None:
        raise UndeterminedError("its role is not in this stack")
    for name in _managed(owner, stack):
        if str(name).rpartition("/")[2] in _BROAD:
            yield Violation(f"its role has the policy {str(name).rpartition('/')[2]}", "roleArn")
    for document in _inline(owner, stack):
        if any(_is_everything(statement) for statement in statements(document, "policy")):
            yield Violation("its role may do everything", "roleArn")


def _is_used(role: Resource, capability: Resource, stack: Stack) -> bool:
    return capability in list(stack.users(role, _CAPABILITY, "roleArn"))


def _managed(role: Resource, stack: Stack) -> Iterator[Any]:
    yield from role.props.get("managedPolicyArns") or ()
    for attachment in stack.users(role, _ATTACHED, "role"):
        yield attachment.props.get("policyArn")
    for attachments in stack.users(role, _POLICY_LIST, "roleName"):
        yield from attachments.props.get("policyArns") or ()


def _inline(role: Resource, stack: Stack) -> Iterator[Any]:
    for one in role.props.get("inlinePolicies") or ():
        yield (one or {}).get("policy")
    for one in stack.users(role, _INLINE, "role"):
        yield one.props.get("policy")


def _is_everything(statement: Statement) -> bool:
    return statement.allows and not {"*", "*:*", "iam:*"}.isdisjoint(statement.actions)
