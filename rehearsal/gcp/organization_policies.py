"""Organization policies: what they forbid, with the services' errors.

Source: Organization Policy documentation, "Organization policy constraints"; Workbench documentation,
"Manage metadata" (keys that disable features of notebooks); issues 4976 (shielded VMs in the
default pool) and 4989 (nodes forward packets) of hashicorp/terraform-provider-google.
"""

from collections.abc import Iterator
from typing import Any

from rehearsal.core.faults import Faults
from rehearsal.core.model import Properties, RefusalError
from rehearsal.gcp import organization_baseline
from rehearsal.gcp.rules.book import block
from rehearsal.gcp.sizes import CLUSTER, POOL

_NOTEBOOK, _ACCOUNT = "gcp:workbench/instance:Instance", "gcp:serviceaccount/account:Account"
_RUN = "gcp:cloudrunv2/service:Service"
# Constraint -> (key of an instance's metadata that satisfies it, error)
_OF_NOTEBOOKS = {
    "ainotebooks.disableFileDownloads": ("notebook-disable-downloads", "Downloading files is not allowed."),
    "ainotebooks.disableRootAccess": ("notebook-disable-root", "Root access is not allowed."),
    "ainotebooks.disableTerminal": ("notebook-disable-terminal", "The terminal is not allowed."),
}
_SQL, _PEERING = "gcp:sql/databaseInstance:DatabaseInstance", "gcp:servicenetworking/connection:Connection"


def refuse(scenario: Faults, token: str, inputs: Properties, project: str, cluster: Properties) -> None:
    """Raise RefusalError for a violated policy; `cluster` are the inputs of a pool's cluster."""
    for constraint, refusal in organization_baseline.broken(scenario.organization, token, inputs, project):
        if constraint in scenario.org_policies:
            raise refusal
    for constraint, why, path, fix in _broken(token, inputs, cluster):
        if constraint in scenario.org_policies:
            raise RefusalError(
                "conditionNotMet",
                f"Error 412: Constraint constraints/{constraint} violated for project {project}. {why} "
                f"(property {path})",
                fix,
            )


def _broken(token: str, inputs: Properties, cluster: Properties) -> Iterator[tuple[str, str, str, str]]:
    """(constraint, reason of the service, property, fix) of all violations."""
    if token in (CLUSTER, POOL):
        yield from _nodes(token, inputs, cluster)
    network = block(inputs.get("settings"), "ipConfiguration")
    if token == _SQL and network.get("ipv4Enabled", True) is not False:
        yield (
            "sql.restrictPublicIp",
            "Public IP addresses are not allowed.",
            "settings.ipConfiguration.ipv4Enabled",
            "Set it to false and give a private network.",
        )
    if token == _NOTEBOOK:
        yield from _notebook(inputs)
    if token == _ACCOUNT:
        yield (
            "iam.disableServiceAccountCreation",
            "Service account creation is not allowed on this project.",
            "accountId",
            "Let the organisation allow it for this project.",
        )
    if token == _RUN and inputs.get("ingress", "INGRESS_TRAFFIC_ALL") == "INGRESS_TRAFFIC_ALL":
        # Emulated with the value of landing zones: everything but `all` is allowed.
        yield (
            "run.allowedIngress",
            "The ingress setting INGRESS_TRAFFIC_ALL is not allowed.",
            "ingress",
            "Let the organisation allow it for this project, or set a narrower one.",
        )
    if token == _PEERING:
        yield (
            "compute.restrictVpcPeering",
            "Peering the network with the service producer's is not allowed.",
            "network",
            "Let the organisation allow the peering, or use Private Service Connect.",
        )


def _notebook(inputs: Properties) -> Iterator[tuple[str, str, str, str]]:
    """Violations of Workbench instances."""
    setup = block(inputs.get("gceSetup"))
    metadata = block(setup.get("metadata"))
    if setup.get("disablePublicIp") is not True:
        yield (
            "ainotebooks.restrictPublicIp",
            "Public IP addresses are not allowed.",
            "gceSetup.disablePublicIp",
            "Set it to true, and give the subnetwork a way out.",
        )
    for constraint, (key, why) in _OF_NOTEBOOKS.items():
        if str(metadata.get(key)).lower() != "true":
            yield constraint, why, f"gceSetup.metadata.{key}", 'Set it to "true".'
    if not metadata.get("notebook-upgrade-schedule"):
        yield (
            "ainotebooks.requireAutoUpgradeSchedule",
            "An upgrade schedule is required.",
            "gceSetup.metadata.notebook-upgrade-schedule",
            "Give a cron expression.",
        )
    if block(setup.get("shieldedInstanceConfig")).get("enableSecureBoot") is not True:
        yield (
            "compute.requireShieldedVm",
            "Secure Boot is not enabled in the 'shielded_instance_config' field.",
            "gceSetup.shieldedInstanceConfig.enableSecureBoot",
            "Set it to true.",
        )


def _nodes(token: str, inputs: Properties, cluster: Properties) -> Iterator[tuple[str, str, str, str]]:
    """Violations of nodes: of a pool, and those that a new cluster starts with."""
    if inputs.get("enableAutopilot"):
        return
    shielded = block(inputs.get("nodeConfig"), "shieldedInstanceConfig")
    if not inputs.get("nodePools") and shielded.get("enableSecureBoot") is not True:
        yield (
            "compute.requireShieldedVm",
            "Secure Boot is not enabled in the 'shielded_instance_config' field.",
            "nodeConfig.shieldedInstanceConfig.enableSecureBoot",
            "The nodes that a cluster is created with need it too, even if their pool is then removed.",
        )
    yield (
        "compute.vmCanIpForward",
        "Nodes of GKE forward packets.",
        "nodeConfig",
        "There is no way around it: let the organisation allow it for this project.",
    )
    if not _private(inputs, cluster if token == POOL else inputs):
        yield (
            "compute.vmExternalIpAccess",
            "Nodes would have external IP addresses.",
            "networkConfig.enablePrivateNodes" if token == POOL else "privateClusterConfig",
            "Give them private addresses only.",
        )


def _private(inputs: Properties, cluster: Properties) -> bool:
    own: Any = block(inputs.get("networkConfig")).get("enablePrivateNodes")
    if own is not None:
        return bool(own)
    return bool(block(cluster.get("privateClusterConfig")).get("enablePrivateNodes"))
