"""How the services themselves word the faults that a rehearsal can ask for.

Wording read in public logs: `InsufficientInstanceCapacity` and `VcpuLimitExceeded` in the records of Spot
Ocean's and Terraform's users; `AsgInstanceLaunchFailures` in failed EKS node groups; GCE's pool errors.
"""

from rehearsal.core.model import RefusalError

_THROTTLED = {
    "aws": ("ThrottlingException", "Rate exceeded"),
    "gcp": ("rateLimitExceeded", "Error 429: Quota exceeded for quota metric of this API"),
    "kubernetes": (
        "TooManyRequests",
        "the server has received too many requests and has asked us to try again later",
    ),
}
_TRANSIENT = {
    "aws": ("ServiceUnavailable", "StatusCode: 503, the service is temporarily unable to handle the request"),
    "gcp": ("backendError", "Error 503: the service is currently unavailable"),
    "kubernetes": ("InternalError", "Internal error occurred: etcdserver: request timed out"),
}
_TRY_AGAIN = "Run up again, or ask for another zone, machine type or market."
_NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"


def throttled(package: str) -> RefusalError:
    """The service is asked too fast."""
    return RefusalError(*_THROTTLED[package], "It did not stop for as long as the provider tries again.")


def transient(package: str) -> RefusalError:
    """The service fails for a moment."""
    return RefusalError(*_TRANSIENT[package], "It did not stop for as long as the provider tries again.")


def no_capacity(token: str, name: str, machine: str = "", zone: str = "", market: str = "") -> RefusalError:
    """There are no machines; `machine`, `zone` and `market` as far as they are known."""
    if token.startswith("gcp:"):
        return RefusalError(
            "ZONE_RESOURCE_POOL_EXHAUSTED",
            f"The zone {zone or 'of this resource'} does not have enough resources available to fulfill the "
            "request.",
            _TRY_AGAIN,
        )
    if token.startswith("kubernetes:"):
        return RefusalError("Unschedulable", "0/0 nodes are available: insufficient capacity.", _TRY_AGAIN)
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
            _TRY_AGAIN,
        )
    return RefusalError("InsufficientInstanceCapacity", text, _TRY_AGAIN)


def over_quota(token: str, name: str) -> RefusalError:
    """The account may not have one more of a type."""
    kind = token.rpartition(":")[2]
    fix = "Ask for a higher quota, or remove what is not needed."
    if token.startswith("gcp:"):
        return RefusalError("quotaExceeded", f"Quota for {kind} exceeded. Limit reached by {name}.", fix)
    if token.startswith("kubernetes:"):
        return RefusalError("Forbidden", f'{kind} "{name}" is forbidden: exceeded quota.', fix)
    words = {"Vpc": "VpcLimitExceeded", "Eip": "AddressLimitExceeded", "NodeGroup": "VcpuLimitExceeded"}
    code = words.get(kind, "LimitExceededException")
    return RefusalError(code, f"The maximum number of {kind} has been reached ({name}).", fix)
