"""The emulated `aws` package: its classes, and how AWS and its provider respond to faults.

Wording read in public logs: `InsufficientInstanceCapacity` and `VcpuLimitExceeded` in the records of Spot
Ocean's and Terraform's users; `AsgInstanceLaunchFailures` in failed EKS node groups.
"""

from rehearsal.core.model import RAISE_QUOTA, TRY_AGAIN, FaultResponses, Package, RefusalError

_NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"


def no_capacity(token: str, name: str, machine: str = "", zone: str = "", market: str = "") -> RefusalError:
    """No machines are left; `machine`, `zone` and `market` as far as they are known."""
    text = (
        f"We currently do not have sufficient {machine + ' ' if machine else ''}capacity in the Availability "
        f"Zone you requested{f' ({zone})' if zone else ''}. Our system will be working on provisioning "
        "additional capacity."
    )
    if token == _NODE_GROUP:
        kind = "Spot" if market == "spot" else "On-Demand"
        return RefusalError(
            "AsgInstanceLaunchFailures",
            f"waiting for EKS Node Group ({name}) create: unexpected state 'CREATE_FAILED', wanted target "
            f"'ACTIVE'. Could not launch {kind} Instances. InsufficientInstanceCapacity - {text}",
            TRY_AGAIN,
        )
    return RefusalError("InsufficientInstanceCapacity", text, TRY_AGAIN)


def _over_quota(token: str, name: str) -> RefusalError:
    kind = token.rpartition(":")[2]
    codes = {"Vpc": "VpcLimitExceeded", "Eip": "AddressLimitExceeded", "NodeGroup": "VcpuLimitExceeded"}
    code = codes.get(kind, "LimitExceededException")
    return RefusalError(code, f"The maximum number of {kind} has been reached ({name}).", RAISE_QUOTA)


PACKAGE = Package(
    "rehearsal.aws.cloud:EmulatedAws",
    real_clusters="rehearsal.realcluster.made_clusters:MadeClusters",
    limits="rehearsal.aws.limits:Limited",
    existing="rehearsal.aws.existing",
    environment={"region": ("AWS_REGION", "AWS_DEFAULT_REGION")},
    faults=FaultResponses(
        retries=25,  # terraform-provider-aws `max_retries`
        throttled=("ThrottlingException", "Rate exceeded"),
        transient=(
            "ServiceUnavailable",
            "StatusCode: 503, the service is temporarily unable to handle the request",
        ),
        expired=("ExpiredTokenException", "The security token included in the request is expired"),
        no_capacity=no_capacity,
        over_quota=_over_quota,
    ),
)
