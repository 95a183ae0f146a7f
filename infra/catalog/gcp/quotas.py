"""What machines take of the quotas of a project, and how more is asked for."""

import math
from collections.abc import Iterator, Mapping

from infra.catalog.gcp import facts
from infra.catalog.gcp.model import Quota


def gpu_key(accelerator: str, *, preemptible: bool) -> str | None:
    """The quota that GPUs count against; None where none is known."""
    rows = facts.quotas.values()
    wanted = accelerator, preemptible
    return next((row.key for row in rows if (row.accelerator, row.preemptible) == wanted), None)


def cpu_key(machine: str) -> str | None:
    """The quota of a region that the vCPUs of a machine type count against; None where none is known."""
    series = machine.partition("-")[0]
    return next((row.key for row in facts.quotas.values() if series in row.families), None)


def vcpus(machine: str) -> int | None:
    """The vCPUs of a machine type, also of one that only its name tells them of, as `c9-standard-8`.

    Source: Compute Engine documentation, "Machine families resource and comparison guide", naming convention.
    """
    last = machine.rpartition("-")[2]
    named = int(last) if last.isdigit() and machine.count("-") == 2 else None
    return facts.vcpus(machine) or named


def taken(
    machine: str, gpus: Mapping[str, int], nodes: int, *, preemptible: bool
) -> Iterator[tuple[str, float]]:
    """(quota, amount) of so many machines with these GPUs each; of what has no quota, or none known, nothing.

    In all regions together, what is bought on demand counts: no source says whether Spot does, nor whether
    processors of machines with GPUs do. Of these, A2 alone has a quota of processors, for all markets.
    """
    for accelerator, count in gpus.items():
        key = gpu_key(accelerator, preemptible=preemptible)
        if key:
            yield key, count * nodes
        if not preemptible:
            yield "gpus_all_regions", count * nodes
    key, each, with_gpus = cpu_key(machine), vcpus(machine), machine in facts.machine_types
    if each and key and (with_gpus or not preemptible):
        yield key, each * nodes
    if each and not with_gpus and not preemptible:
        yield "cpus_all_regions", each * nodes


def dimensions(row: Quota, region: str) -> dict[str, str]:
    """What tells the values of a quota apart."""
    place = {"region": region} if row.regional else {}
    return {**place, **({"gpu_family": row.gpu_family} if row.gpu_family else {})}


def request(row: Quota, value: float, project: str, region: str) -> str:
    """The command that asks Google for a quota of `value`, rounded up."""
    named = ",".join(f"{name}={one}" for name, one in dimensions(row, region).items())
    return (
        f"gcloud beta quotas preferences create --project={project} --service={row.service} "
        f"--quota-id={row.quota_id} --preferred-value={math.ceil(value)}"
        + (f" --dimensions={named}" if named else "")
    )
