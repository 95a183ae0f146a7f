"""EKS capabilities: controllers that AWS runs outside of the cluster, and what they make by themselves."""

from collections.abc import Iterator

from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.identity.documents import ROLE, Statement, grants
from policies.stack import Stack

_CAPABILITY = "aws:eks/capability:Capability"
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
    owner = stack.target(capability, "roleArn", ROLE)
    if owner is None:
        raise UndeterminedError("its role is not in this stack")
    for grant in grants(owner, stack):
        if grant.managed in _BROAD:
            yield Violation(f"its role has the policy {grant.managed}", "roleArn")
        if any(map(_is_everything, grant.statements)):
            yield Violation("its role may do everything", "roleArn")


def _is_everything(statement: Statement) -> bool:
    widest = not {"*", "*:*", "iam:*"}.isdisjoint(statement.actions)
    return statement.is_everything or (statement.allows and widest)
