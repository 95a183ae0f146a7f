"""Checks of zones, of the machine types and GPUs that they offer, and of services of the region."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from infra.catalog.gcp import facts
from infra.catalog.gcp.model import Way
from infra.stackspec.layouts import JobMachineSpec, PoolSpec, SmallLayout
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp import apis
from trainstack.preflight.gcp.project import Project

_ZONES, _TYPES, _GPUS, _SCHEDULER = "zones", "types", "accelerators", "scheduler"
_PURCHASES = "purchases"


def zones(project: Project) -> Iterator[Answer]:
    """Every zone of the spec is in the region, and up."""
    pools = (zone for pool in project.machines.pools for zone in pool.zones)
    yield from zones_are_up(project, [*project.machines.zones, *pools])


def zones_are_up(project: Project, named: Iterable[str]) -> Iterator[Answer]:
    """Every given zone is in the region, and up."""
    region = project.spec.region
    rows = list(project.items("compute.zones.list", "items", project=project.on.project))
    mine = {str(row["name"]): row for row in rows if str(row["region"]).rpartition("/")[2] == region}
    up = sorted(name for name, row in mine.items() if row.get("status") == "UP")
    wanted = dict.fromkeys(named)
    fix = f"{region} has {', '.join(up)}." if up else f"There is no region {region} for this project."
    wrong = [name for name in wanted if name not in up]
    for name in wrong:
        why = "down" if name in mine else f"not in {region}"
        yield Answer(_ZONES, State.SHORT, f"{name} is {why}", fix)
    if not wrong:
        yield Answer(_ZONES, State.READY, ", ".join(wanted))


def types(project: Project) -> Iterator[Answer]:
    """Every machine type is offered in every zone of its pools."""
    layout = project.machines
    wanted = {
        path: (pool.machine, pool.zones if isinstance(pool, PoolSpec) else layout.zones)
        for path, pool in layout.by_path.items()
    }
    if isinstance(layout, SlurmLayout):
        wanted["layout.login"] = layout.login.machine, layout.zones
    offered = _offered(project, "machineTypes", {machine for machine, _ in wanted.values()})
    yield from _judged(project, _TYPES, wanted, offered)


def accelerators(project: Project) -> Iterator[Answer]:
    """The GPUs of every machine type are offered in every zone of its pools."""
    wanted = {
        f"layout.pools[{index}]": (facts.machine_types[pool.machine].accelerator, pool.zones)
        for index, pool in enumerate(project.machines.pools)
        if pool.machine in facts.machine_types
    }
    if wanted:
        offered = _offered(project, "acceleratorTypes", {name for name, _ in wanted.values()})
        yield from _judged(project, _GPUS, wanted, offered)


def purchases(project: Project) -> Iterator[Answer]:
    """Every machine type is sold the way that the spec buys it, by the rows that prices and advice read.

    No API of a project reports what is sold; a way without a source is reported, not refused.
    """
    layout = project.layout
    bought: dict[str, JobMachineSpec | PoolSpec] = {}
    if isinstance(layout, SmallLayout):
        bought.update((f"layout.machines[{index}]", one) for index, one in enumerate(layout.machines))
    else:
        bought.update((f"layout.pools[{index}]", one) for index, one in enumerate(layout.pools))
    sold = {path: facts.sold(one.machine, cast(Way, one.purchase.kind)) for path, one in bought.items()}
    for path, one in bought.items():
        ways = ", ".join(facts.ways(one.machine))
        text = f"{path}: {one.machine} by {one.purchase.kind}"
        if sold[path] is False:
            fix = f"It is sold by {ways}." if ways else "Use another type."
            yield Answer(_PURCHASES, State.SHORT, f"{text} is not sold", fix)
        elif sold[path] is None:
            fix = f"Sources name {ways}." if ways else "Check the documentation of Compute Engine."
            yield Answer(_PURCHASES, State.NOTE, f"{text}: no source says that it is sold so", fix)
    if all(sold.values()):
        named = dict.fromkeys(f"{one.machine} by {one.purchase.kind}" for one in bought.values())
        yield Answer(_PURCHASES, State.READY, ", ".join(named) or "no machines")


def scheduler(project: Project) -> Iterator[Answer]:
    """Cloud Scheduler is available in the region of a stack that uses it.

    The list of its regions grows (europe-west4 in April 2026, by its release notes), so it is requested.
    """
    if "cloudscheduler.googleapis.com" not in apis.wanted(project):
        return
    region = project.spec.region
    rows = project.items("cloudscheduler.projects.locations.list", "locations", name=project.path)
    found = sorted(str(row["locationId"]) for row in rows)
    if region in found:
        yield Answer(_SCHEDULER, State.READY, f"Cloud Scheduler is in {region}")
        return
    what = "smoke.schedule" if isinstance(project.layout, SmallLayout) else "data.shared_fs"
    fix = f"Remove {what}, or choose a region that has it: {', '.join(found) or 'it lists none'}."
    yield Answer(_SCHEDULER, State.SHORT, f"{what} needs Cloud Scheduler, which is not in {region}", fix)


def _offered(project: Project, kind: str, names: Iterable[str]) -> Mapping[str, set[str]]:
    """The zones that offer each type, without types that can no longer be created."""
    found: dict[str, set[str]] = {name: set() for name in sorted(names)}
    # Compute Engine, parameter `filter` of its lists (discovery document compute v1).
    named = " OR ".join(f'(name = "{name}")' for name in found)
    for zone, row in project.everywhere(f"compute.{kind}.aggregatedList", kind, filter=named):
        gone = (row.get("deprecated") or {}).get("state") in ("OBSOLETE", "DELETED")
        if row["name"] in found and not gone:
            found[row["name"]].add(zone)
    return found


def _judged(
    project: Project,
    check: str,
    wanted: Mapping[str, tuple[str, Sequence[str]]],
    offered: Mapping[str, set[str]],
) -> Iterator[Answer]:
    missing = [
        (path, name, zone)
        for path, (name, zones) in wanted.items()
        for zone in zones
        if zone not in offered[name]
    ]
    for path, name, zone in missing:
        here = sorted(one for one in offered[name] if one.startswith(f"{project.spec.region}-"))
        where = ", ".join(here or sorted(offered[name])) or "no zone visible to this project"
        fix = f"It is offered in {where}."
        yield Answer(check, State.SHORT, f"{path}: {name} is not offered in {zone}", fix)
    if not missing:
        yield Answer(check, State.READY, f"{', '.join(offered)}, in all their zones")
