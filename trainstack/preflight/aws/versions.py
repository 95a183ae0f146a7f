"""The check of the Kubernetes version: in standard support of EKS."""

from collections.abc import Iterator

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

_CHECK = "kubernetes-version"
_STANDARD = "STANDARD_SUPPORT"


def kubernetes(account: Account) -> Iterator[Answer]:
    """The version is in standard support: the clusters exclude extended support (`upgrade_policy` STANDARD).

    Source: botocore 1.44.5 eks/2017-11-01 DescribeClusterVersions, VersionStatus.
    """
    wanted = account.cluster.kubernetes_version
    found = list(account.pages("eks", "describe_cluster_versions", "clusterVersions", includeAll=True))
    standard = [row["clusterVersion"] for row in found if row.get("versionStatus") == _STANDARD]
    mine = next((row for row in found if row["clusterVersion"] == wanted), None)
    fix = f"Set layout.kubernetes_version to one of {', '.join(standard)}."
    if mine is None:
        yield Answer(_CHECK, State.SHORT, f"EKS has no version {wanted}", fix)
    elif mine.get("versionStatus") != _STANDARD:
        status = str(mine.get("versionStatus", "unknown")).lower().replace("_", " ")
        yield Answer(_CHECK, State.SHORT, f"{wanted} is not in standard support but {status}", fix)
    else:
        until = mine.get("endOfStandardSupportDate")
        text = f"{wanted}, in standard support" + (f" until {until:%Y-%m-%d}" if until else "")
        yield Answer(_CHECK, State.READY, text)
