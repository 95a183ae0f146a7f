"""Machine types, accelerators and scheduling of virtual machines, wherever a type describes one."""

import re
from collections.abc import Iterator
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import at, each, steps, walk
from rehearsal.core.rules.model import EVERY, Violation
from rehearsal.core.rules.open_lists import ListVerdict
from rehearsal.gcp import provider
from rehearsal.gcp.rules.book import BOOK, ProjectView, block, items

_LIST = f"gcloud compute machine-types list, as in {provider.lists_source()}"
_GPUS = "Compute Engine documentation, GPU machine types (N1: T4, P4, P100, V100; others: their series)"
_CUSTOM = re.compile(r"(?:([a-z]\d[a-z]?)-)?custom-(micro|small|medium|\d+)-(\d+)(-ext)?")
# Series with custom machine types.
_CUSTOM_SERIES = (None, "e2", "g2", "n1", "n2", "n2d", "n4", "n4a", "n4d")
# Vocabularies of other services: Cloud Build, AI Platform, Composer.
_OTHER = re.compile(r".*[A-Z_].*|(db|composer)-.*")
# Accelerator -> the series that have it; those before the last row are attached, the others built in.
_SERIES = {
    "nvidia-tesla-t4": "n1-",
    "nvidia-tesla-p4": "n1-",
    "nvidia-tesla-p100": "n1-",
    "nvidia-tesla-v100": "n1-",
    "nvidia-l4": "g2-",
    "nvidia-rtx-pro-6000": "g4-",
    "nvidia-tesla-a100": "a2-highgpu-|a2-megagpu-",
    "nvidia-a100-80gb": "a2-ultragpu-",
    "nvidia-h100-80gb": "a3-highgpu-|a3-edgegpu-",
    "nvidia-h100-mega-80gb": "a3-megagpu-",
    "nvidia-h200-141gb": "a3-ultragpu-",
    "nvidia-b200": "a4-",
    "nvidia-gb200": "a4x-highgpu-",
}
_BUILT_IN = re.compile(r"(a2|a3|a4|a4x|g2|g4)-")
_MACHINES = ("gcp:compute/instance:Instance", "gcp:compute/instanceTemplate:InstanceTemplate",
             "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate")  # fmt: skip
# Series without Persistent Disk, and without Local SSD.
_NO_PERSISTENT_DISK, _NO_LOCAL_SSD = re.compile(r"(c4|c4a|n4)-"), re.compile(r"e2-")
_INSTANCE = _MACHINES[0].removeprefix("gcp:")
_NEEDS_STOP = ("machineType", "minCpuPlatform", "enableDisplay", "serviceAccount.email")
_POOLS = ("gcp:container/nodePool:NodePool", "gcp:container/cluster:Cluster")
_DOCS = "hashicorp/terraform-provider-google@e03b7622: website/docs/r/compute_instance"


def _machine_types(inputs: Properties) -> Iterator[tuple[str, str, ListVerdict]]:
    for path, value in walk(inputs):
        names = [step for step in steps(path) if isinstance(step, str)]
        if names and names[-1] == "machineType" and isinstance(value, str) and value:
            plain = value.rpartition("/")[2]
            if not _OTHER.fullmatch(plain):
                yield path, plain, _judge(plain)


def _judge(name: str) -> ListVerdict:
    custom = _CUSTOM.fullmatch(name)
    if custom is None:
        return provider.machines().judge(name)
    cpus = int(custom[2]) if custom[2].isdecimal() else 2
    fits = custom[1] in _CUSTOM_SERIES and (cpus == 1 or cpus % 2 == 0) and int(custom[3]) % 256 == 0
    return ListVerdict.KNOWN if fits else ListVerdict.WRONG


@BOOK.rule("GCP-MACHINE-001", EVERY, source=_LIST)
def _exists(inputs: Properties) -> Iterator[Violation]:
    """A machine type is one of Compute Engine; a custom one has even CPUs and memory in steps of 256 MB."""
    for path, name, verdict in _machine_types(inputs):
        if verdict is ListVerdict.WRONG:
            message = (
                f"Invalid value for field 'machineType': '{name}'. The referenced machine type does not exist"
            )
            yield Violation(path, message, f"Did you mean {provider.machines().nearest(name)}?")


@BOOK.rule_around("GCP-MACHINE-002", EVERY, source=_LIST, advice=True)
def _newer(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A machine type is one of the list, which may be older than it."""
    for path, name, verdict in _machine_types(inputs):
        if verdict is ListVerdict.NEWER:
            yield Violation(
                path, f"{name} may be newer than the list of machine types, which does not have it"
            )


def _with_accelerators(inputs: Properties) -> Iterator[tuple[str, Any, str, str]]:
    """(path, machine type, path of the accelerator, its type) of each accelerator of a machine."""
    for place in ("", "nodeConfig", "gceSetup"):
        node = block(inputs.get(place)) if place else inputs
        for name in ("guestAccelerators", "acceleratorConfigs"):
            for path, kind in each(node, f"{name}.type"):
                if isinstance(kind, str) and kind:
                    machine = node.get("machineType")
                    yield place, machine, f"{place}.{path}" if place else path, _plain(kind)


def _plain(kind: str) -> str:
    """The name of an accelerator: of a link, with the words of notebooks, without a workstation's licence."""
    plain = kind.rpartition("/")[2].lower().replace("_", "-")
    return plain.removesuffix("-vws").replace("rtx6000", "rtx-pro-6000")


@BOOK.rule("GCP-GPU-013", *_MACHINES, *_POOLS, "gcp:workbench/instance:Instance", source=_GPUS)
def _fits(inputs: Properties) -> Iterator[Violation]:
    """A GPU is of a machine series that has it: others cannot be attached, but for those of N1."""
    for _, machine, path, kind in _with_accelerators(inputs):
        wanted = next((series for name, series in _SERIES.items() if name == kind), None)
        known = isinstance(machine, str) and bool(machine)
        if wanted is None or machine is UNKNOWN:
            continue
        plain = str(machine).rpartition("/")[2] if known else "e2-medium"
        attached = re.match(wanted, plain) or (wanted == "n1-" and plain.startswith("custom-"))
        if not attached and not (known and _BUILT_IN.match(plain)):
            series = " or ".join(one.rstrip("-") for one in wanted.split("|"))
            message = f"[{kind}] features are not compatible for creating {plain}"
            yield Violation(path, message, f"It is of machine types {series}-*.")


@BOOK.rule(
    "GCP-VM-001", _MACHINES[0], source=f"{_DOCS} (guest_accelerator: on_host_maintenance must be TERMINATE)"
)
def _terminates(inputs: Properties) -> Iterator[Violation]:
    """A machine with a GPU is terminated for maintenance: it cannot migrate."""
    scheduling = inputs.get("scheduling") or inputs.get("schedulings")
    plan = scheduling[0] if isinstance(scheduling, list) and scheduling else scheduling
    if UNKNOWN in (plan, inputs.get("guestAccelerators"), inputs.get("machineType")):
        return
    plan, machine = block(plan), str(inputs.get("machineType")).rpartition("/")[2]
    counts = [block(one).get("count", 1) for one in inputs.get("guestAccelerators") or ()]
    if not _BUILT_IN.match(machine) and not any(counts):
        return
    reclaimed = plan.get("preemptible") is True or plan.get("provisioningModel") in (
        "SPOT",
        UNKNOWN,
        "FLEX_START",
    )
    action = plan.get("onHostMaintenance")
    if action is not UNKNOWN and action != "TERMINATE" and not (reclaimed and action is None):
        yield Violation(
            "scheduling.onHostMaintenance",
            "Instances with guest accelerators do not support live migration",
            "Set TERMINATE.",
        )


@BOOK.rule("GCP-VM-002", *_MACHINES, source=f"{_DOCS} (scheduling: preemptible, automatic_restart)")
def _preemptible(inputs: Properties) -> Iterator[Violation]:
    """A preemptible machine is not restarted, and does not migrate."""
    scheduling = inputs.get("scheduling") or inputs.get("schedulings")
    plan = block(scheduling[0] if isinstance(scheduling, list) and scheduling else scheduling)
    if plan.get("preemptible") is not True:
        return
    if plan.get("automaticRestart", True) is True:
        message = "Scheduling must have automaticRestart be false when preemptible is true"
        yield Violation("scheduling.automaticRestart", message, "Set false: the default is true.")
    if plan.get("onHostMaintenance") == "MIGRATE":
        message = "Scheduling must have onHostMaintenance be TERMINATE when preemptible is true"
        yield Violation("scheduling.onHostMaintenance", message, "Set TERMINATE.")
    if plan.get("provisioningModel") == "STANDARD":
        message = "Scheduling must have preemptible be false when provisioning model is STANDARD"
        yield Violation("scheduling.preemptible", message, "Set provisioningModel SPOT.")


@BOOK.rule("GCP-POOL-031", *_POOLS, source="GKE API, NodeConfig (spot, preemptible: exclude each other)")
def _spot(inputs: Properties) -> Iterator[Violation]:
    """Nodes are spot or preemptible, not both."""
    if at(inputs, "nodeConfig.spot") is True and at(inputs, "nodeConfig.preemptible") is True:
        yield Violation("nodeConfig.preemptible", "spot and preemptible cannot both be set", "Keep spot.")


@BOOK.rule_around(
    "GCP-VM-007",
    _MACHINES[0],
    source="hashicorp/terraform-provider-google issue 175, GoogleCloudPlatform/cluster-toolkit pull request "
    "140 (text)",
)
def _subnetwork_is_given(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """An interface in a network of custom mode names its subnetwork."""
    for index, one in enumerate(items(inputs.get("networkInterfaces"))):
        given, path = block(one), f"networkInterfaces[{index}].subnetwork"
        network = world.find(given.get("network"), "compute/network:Network")
        other = any(given.get(name) is not None for name in ("subnetwork", "networkAttachment"))
        if network and not other and network.outputs.get("autoCreateSubnetworks") is False:
            yield Violation(
                path,
                f"Invalid value for field 'resource.networkInterfaces[{index}]': Subnetwork should be "
                "specified for custom subnetmode network",
                f"Give a subnetwork of {network.id}.",
                "invalid",
            )


@BOOK.rule(
    "GCP-VM-008",
    _MACHINES[0],
    source="Compute Engine documentation, Machine series comparison (C4, N4); "
    "hashicorp/terraform-provider-google issues 20247 (C4A) and 16020 (E2, text); "
    "kubernetes-sigs/gcp-compute-persistent-disk-csi-driver pkg/gce-cloud-provider/compute/gce-compute.go",
)
def _disks_of_the_series(inputs: Properties) -> Iterator[Violation]:
    """C4, C4A and N4 take no Persistent Disk, E2 takes no Local SSD."""
    machine = inputs.get("machineType")
    if not isinstance(machine, str):
        return
    name = machine.rpartition("/")[2]
    kind = at(inputs, "bootDisk.initializeParams.type")
    plain = kind.rpartition("/")[2] if isinstance(kind, str) else ""
    if _NO_PERSISTENT_DISK.match(name) and plain.startswith("pd-"):
        yield _incompatible("bootDisk.initializeParams.type", plain, name, "Use hyperdisk-balanced.")
    if _NO_LOCAL_SSD.match(name) and items(inputs.get("scratchDisks")):
        yield _incompatible("scratchDisks", "local-ssd", name, "Use another series, such as n2.")


def _incompatible(path: str, disk: str, machine: str, fix: str) -> Violation:
    message = f"[{machine}, {disk}] features are not compatible for creating instance."
    return Violation(path, message, fix, "badRequest")


@BOOK.rule_around(
    "GCP-VM-009",
    _MACHINES[0],
    source="hashicorp/terraform-provider-google google/services/compute/resource_compute_instance.go "
    "(needToStopInstanceBeforeUpdating)",
)
def _stops_for_an_update(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A running machine changes its type, platform, display and account only if the provider may stop it."""
    before = world.current(_INSTANCE)
    if before is None or inputs.get("allowStoppingForUpdate") is True:
        return
    if inputs.get("desiredStatus") == "TERMINATED" or before.inputs.get("desiredStatus") == "TERMINATED":
        return
    for path in _NEEDS_STOP:
        old, new = (_last(at(one, path)) for one in (before.inputs, inputs))
        if old and new and UNKNOWN not in (old, new) and old != new:
            yield Violation(
                path,
                "Changing the machine_type, min_cpu_platform, service_account or enable_display on a started "
                "instance requires stopping it",
                "Set allowStoppingForUpdate.",
            )


def _last(value: Any) -> Any:
    """The name at the end of a link."""
    return value.rpartition("/")[2] if isinstance(value, str) else value
