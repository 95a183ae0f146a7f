"""The emulated `gcp` package: its classes, and how Google Cloud and its provider respond to faults."""

from rehearsal.core.model import RAISE_QUOTA, TRY_AGAIN, FaultResponses, Package, RefusalError


def _no_capacity(token: str, name: str) -> RefusalError:
    text = "The zone of this resource does not have enough resources available to fulfill the request."
    return RefusalError("ZONE_RESOURCE_POOL_EXHAUSTED", text, TRY_AGAIN)


def _over_quota(token: str, name: str) -> RefusalError:
    kind = token.rpartition(":")[2]
    return RefusalError("quotaExceeded", f"Quota for {kind} exceeded. Limit reached by {name}.", RAISE_QUOTA)


PACKAGE = Package(
    "rehearsal.gcp.cloud:EmulatedGcp",
    real_clusters="rehearsal.realcluster.made_clusters:MadeClusters",
    limits="rehearsal.gcp.limits:Limited",
    existing="rehearsal.gcp.existing",
    environment={
        "project": ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT"),
        "region": ("GOOGLE_REGION",),
        "zone": ("GOOGLE_ZONE",),
    },
    faults=FaultResponses(
        retries=25,  # stands for the provider's retries until the operation times out
        throttled=("rateLimitExceeded", "Error 429: Quota exceeded for quota metric of this API"),
        transient=("backendError", "Error 503: the service is currently unavailable"),
        expired=("invalid_grant", "oauth2: Token has been expired or revoked."),
        no_capacity=_no_capacity,
        over_quota=_over_quota,
    ),
)
