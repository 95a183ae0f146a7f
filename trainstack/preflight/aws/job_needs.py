"""The quotas of SageMaker that a stack without a cluster needs: its domain, its notebooks, its jobs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from infra.catalog.aws.jobs import DISK_GB, app_quota_name, jobs, quota_name
from infra.catalog.demand import Demand
from infra.stackspec import StackSpec
from infra.stackspec.layouts import JobMachineSpec, SmallLayout
from infra.stackspec.stack import JOB_STARTUP_S


@dataclass(frozen=True)
class _Job:
    """A job as it is bought; the machines of a training plan count against no quota."""

    name: str
    machine: str
    nodes: int
    seconds: float
    spot: bool = False
    reserved: bool = False


def first(spec: StackSpec, layout: SmallLayout) -> Iterator[Demand]:
    """The needs of a deployment with its validation, which runs on demand (`stacks.job_validation`)."""
    yield from _studio(layout)
    yield from _largest(_gates(spec, layout))


def largest(spec: StackSpec, layout: SmallLayout) -> Iterator[Demand]:
    """In addition the largest job of each machine type, and a notebook for each person."""
    yield from _studio(layout)
    yield from _notebooks(layout)
    yield from _largest([*_gates(spec, layout), *_of_people(layout)])


def _of_people(layout: SmallLayout) -> Iterator[_Job]:
    for one in layout.machines:
        spot, reserved = one.purchase.kind == "spot", one.reservation is not None
        seconds = layout.max_hours * 3600
        yield _Job(one.name, one.machine, one.max_nodes, seconds, spot=spot, reserved=reserved)


def _gates(spec: StackSpec, layout: SmallLayout) -> Iterator[_Job]:
    by_name: dict[str, JobMachineSpec] = {one.name: one for one in layout.machines}
    for name, nodes in spec.validated.items():
        one = by_name[name]
        seconds = spec.smoke.timeout_s + JOB_STARTUP_S
        yield _Job("validation", one.machine, nodes, seconds, reserved=one.reservation is not None)


def _largest(wanted: Iterable[_Job]) -> Iterator[Demand]:
    """Of each quota the largest demand: one job is refused for its size, several wait for each other."""
    found: dict[str, Demand] = {}
    for job in wanted:
        for key, amount in _of(job):
            if key not in found or found[key].amount < amount:
                found[key] = Demand(key, amount, job.name)
    yield from found.values()


def _of(job: _Job) -> Iterator[tuple[str, float]]:
    hardware, spot = jobs.machines[job.machine], "spot_" if job.spot else ""
    if not job.reserved:
        yield quota_name(job.machine, "spot" if job.spot else "on_demand"), job.nodes
        yield f"sagemaker_{spot}training_instances", job.nodes
        yield f"sagemaker_instances_per_{spot}job", job.nodes
    yield "sagemaker_run_seconds", job.seconds
    if not hardware.has_nvme:
        yield "sagemaker_volume_gb", DISK_GB


def _studio(layout: SmallLayout) -> Iterator[Demand]:
    yield Demand("efs_file_systems", 1, "Studio")
    yield Demand("sagemaker_domains", 1, "Studio")
    yield Demand("sagemaker_user_profiles", len(layout.people), "layout.people")


def _notebooks(layout: SmallLayout) -> Iterator[Demand]:
    """A JupyterLab of the default machine type for each person; of other types, and of Code Editor, one."""
    people, path = len(layout.people), "layout.notebooks"
    yield Demand("sagemaker_spaces", people, path)
    yield Demand("sagemaker_apps", people, path)
    yield Demand("sagemaker_space_gb", people * layout.notebooks.disk_gib, path)
    for index, machine in enumerate(layout.notebooks.machines):
        yield Demand(app_quota_name(machine, "JupyterLab"), 1 if index else people, path)
        yield Demand(app_quota_name(machine, "CodeEditor"), 1, path)
