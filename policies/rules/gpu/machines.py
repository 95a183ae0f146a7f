"""Allowed accelerators, and drivers of their nodes."""

from collections.abc import Iterator

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.accelerators import (
    POOLS,
    STARTING,
    EksPool,
    GkePool,
    accelerated,
    machine_of,
    pools_of,
    started,
)
from policies.rules.pools import template_of
from policies.stack import Stack

_RELEASE, _DAEMON_SET = "kubernetes:helm.sh/v3:Release", "kubernetes:apps/v1:DaemonSet"


@CATALOG.rule_around(
    "MLS-GPU-01",
    "critical",
    STARTING,
    "A machine of the wrong type costs a hundred times as much, or cannot run its workload.",
    "Use a machine with an allowed accelerator, or allow it: allowed_accelerators in the settings.",
)
def only_allowed_accelerators(machine: Resource, stack: Stack) -> Iterator[Violation]:
    """Machines have accelerators that are on the list of those allowed, or none."""
    found = list(started(machine, stack))
    allowed = stack.settings.allowed_accelerators
    for devices in found:
        if devices.name not in allowed:
            owner = "" if devices.name == devices.machine.partition(".")[0] else f" of {devices.machine}"
            yield Violation(f"accelerator {devices.name}{owner} is not on the list", devices.path)
    if not found:
        raise NotApplicableError("it starts no machine with accelerators")


@CATALOG.rule_around(
    "MLS-GPU-08",
    "medium",
    POOLS,
    "Without a driver a node is billed, but offers no accelerator to any job.",
    "Set amiType to one with the driver, such as AL2023_x86_64_NVIDIA; on GKE gpuDriverVersion.",
)
def nodes_have_the_driver(holder: Resource, stack: Stack) -> Iterator[Violation]:
    """Nodes with accelerators have an image with the driver, or an installer for it."""
    for pool in accelerated(pools_of(holder, stack)):
        yield from _aws_driver(pool) if isinstance(pool, EksPool) else _google_driver(pool)


def _aws_driver(pool: EksPool) -> Iterator[Violation]:
    image, names = pool.resource.computed("amiType"), [one.name for one in pool.devices()]
    template = template_of(pool.resource, pool.stack)
    if image == "CUSTOM" or (template is not None and template.props.get("imageId")):
        raise NotApplicableError("the content of its custom image is not known")
    # Types of images: NodegroupAMITypes in the EKS API (botocore 1.44.5 eks/2017-11-01).
    neuron = all(name.startswith(("trn", "inf")) for name in names)
    # AL2_x86_64_GPU has both drivers (EKS User Guide, accelerated AMIs).
    words = ("NEURON", "_GPU") if neuron else ("NVIDIA", "_GPU")
    if not any(word in str(image) for word in words):
        yield Violation(f"image {image} has no driver for {', '.join(names)}", "amiType")


def _google_driver(pool: GkePool) -> Iterator[Violation]:
    """GKE installs its default driver itself, from 1.30.1-gke.1156000 on, unless disabled."""
    for index, one in enumerate((pool.props.get("nodeConfig") or {}).get("guestAccelerators") or ()):
        version = (one.get("gpuDriverInstallationConfig") or {}).get("gpuDriverVersion")
        if version == "INSTALLATION_DISABLED" and not _installer(pool.stack):
            path = f"{pool.prefix}nodeConfig.guestAccelerators[{index}].gpuDriverInstallationConfig"
            message = "GKE installs no driver, and nothing else in the stack does"
            yield Violation(message, f"{path}.gpuDriverVersion")


def _installer(stack: Stack) -> bool:
    """Return whether the stack has NVIDIA's GPU operator, or Google's DaemonSet, by its default name."""
    charts = (str(release.props.get("chart")) for release in stack.all(_RELEASE))
    names = ((daemons.props.get("metadata") or {}).get("name") for daemons in stack.all(_DAEMON_SET))
    return any("gpu-operator" in chart for chart in charts) or any(
        "driver-installer" in str(name) for name in names
    )


@CATALOG.rule_around(
    "MLS-GPU-09",
    "high",
    POOLS,
    "A distributed job runs at the pace of its slowest node, and fails where one has fewer devices.",
    "Name machines of one shape only; make another pool for the others.",
)
def pools_are_homogeneous(holder: Resource, stack: Stack) -> Iterator[Violation]:
    """The machines of a pool have the same accelerators, as many, with as much memory and network."""
    for pool in accelerated(pools_of(holder, stack)):
        if isinstance(pool, EksPool):
            yield from _mixed(pool)
        else:
            devices = pool.devices()
            yield from (
                Violation(f"{other.name} beside {devices[0].name}", other.path)
                for other in devices[1:]
                if other.name != devices[0].name
            )


def _mixed(pool: EksPool) -> Iterator[Violation]:
    machines = pool.machines()
    if len(machines) == 1:
        return
    (_, first), *others = machines
    for path, name in others:
        if name != first and (wrong := _difference(first, name)):
            yield Violation(f"{name} has {wrong} of {first}", path)


def _difference(first: str, other: str) -> str:
    from infra.catalog.aws import facts  # noqa: PLC0415 - longer to load than all rules

    known, devices = facts.instance_types, [machine_of("", name) for name in (first, other)]
    if None in devices:
        return "" if devices == [None, None] else "accelerators instead of none, or none instead of those"
    if first not in known or other not in known:
        unknown = other if first in known else first
        raise UndeterminedError(f"instanceTypes: the catalog does not know the shape of {unknown}")
    a, b = known[first], known[other]
    if a.accelerator != b.accelerator:
        return f"{b.accelerator} instead of the {a.accelerator}"
    if a.accelerator_count != b.accelerator_count:
        return f"{b.accelerator_count} accelerators instead of the {a.accelerator_count}"
    if a.accelerator_memory_mib != b.accelerator_memory_mib:
        return f"{b.accelerator_memory_mib} MiB per accelerator instead of the {a.accelerator_memory_mib}"
    if a.network_cards != b.network_cards:
        return f"{b.network_cards} network cards instead of the {a.network_cards}"
    return ""
