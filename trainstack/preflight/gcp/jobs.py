"""Checks for stacks without a cluster: quotas of custom jobs, reservations, zones of notebooks."""

from collections.abc import Iterator, Mapping

from infra.catalog.gcp.jobs import JobReservation, job_reservation, jobs, quota_metric
from infra.stackspec.layouts import JobMachineSpec, SmallLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.places import zones_are_up
from trainstack.preflight.gcp.project import Project, Row
from trainstack.preflight.gcp.reservations import unusable

_CHECK, _RESERVED = "job-quotas", "job-reservations"
_SERVICE = "aiplatform.googleapis.com"
UNLIMITED = "-1"


def zones(project: Project) -> Iterator[Answer]:
    """Every zone of the spec is in the region, and up."""
    yield from zones_are_up(project, project.layout.zones)


def room(project: Project) -> Iterator[Answer]:
    """The GPU quota of each machine allows the largest job on it; many begin with 0.

    Above the quota a job is rejected, or stays `QUEUED`. Quotas of custom jobs are those of Vertex AI, not of
    Compute Engine; they are found by metric, as their ids follow no rule.
    """
    layout = project.layout
    assert isinstance(layout, SmallLayout)
    infos = _infos(project)
    for one in layout.machines:
        machine = jobs.machines[one.machine]
        wanted = machine.gpus * one.max_nodes
        metric = quota_metric(machine, spot=one.purchase.kind in ("spot", "flex_start"))
        if wanted == 0:
            continue
        if metric is None or metric not in infos:
            text = f"the project lists no quota of {machine.accelerator} for custom jobs"
            fix = "Look it up in the console (IAM, Quotas, Vertex AI API); --skip job-quotas to continue."
            yield Answer(_CHECK, State.UNKNOWN, text, fix)
            continue
        info, allowed = infos[metric], _value(infos[metric], project.spec.region)
        name = metric.partition("/")[2]
        if allowed is not None and allowed < wanted:
            text = f"{name}: {allowed:g} allowed, {wanted} wanted for a job on {one.name}"
            yield Answer(_CHECK, State.SHORT, text, _request(project, info, wanted))
        else:
            many = "any number" if allowed is None else f"{allowed:g}"
            yield Answer(_CHECK, State.READY, f"{name}: {many}, {wanted} wanted for a job on {one.name}")


def reserved(project: Project) -> Iterator[Answer]:
    """Each reservation is ready, shared with the service, of the machine, and large enough for one job.

    Source: Vertex AI documentation, "Use reservations with training" (requirements), read 2026-11-26.
    """
    layout = project.layout
    assert isinstance(layout, SmallLayout)
    for index, one in enumerate(layout.machines):
        named = job_reservation(one.reservation or "")
        if named is not None:
            yield _reserved(project, f"layout.machines[{index}]: {one.reservation}", one, named)


def _reserved(project: Project, path: str, one: JobMachineSpec, named: JobReservation) -> Answer:
    asked = {"project": named.project, "zone": named.zone, "reservation": named.name}
    row = project.found("compute.reservations.get", **asked)
    if row is None:
        fix = f"gcloud compute reservations list --project={named.project} lists the existing ones."
        return Answer(_RESERVED, State.SHORT, f"{path} does not exist", fix)
    wrong = list(unusable(project, named.project, one.machine, row))
    count = int((row.get("specificReservation") or {}).get("count", 0))
    if count < one.max_nodes:
        wrong.append(f"holds {count} machines, a job can have {one.max_nodes}")
    if (row.get("reservationSharingPolicy") or {}).get("serviceShareType") != "ALLOW_ALL":
        wrong.append("is not shared with Vertex AI")
    if wrong:
        fix = (
            "Name another one, or fix it: gcloud compute reservations update NAME "
            "--reservation-sharing-policy=ALLOW_ALL shares it with the service."
        )
        return Answer(_RESERVED, State.SHORT, f"{path} {'; '.join(wrong)}", fix)
    return Answer(_RESERVED, State.READY, f"{path} is ready, with {count} machines")


def _infos(project: Project) -> Mapping[str, Row]:
    """Quotas of the service by metric; of several with one metric, that of a region."""
    method = "cloudquotas.projects.locations.services.quotaInfos.list"
    parent = f"{project.path}/locations/global/services/{_SERVICE}"
    rows = project.items(method, "quotaInfos", parent=parent)
    return {str(row["metric"]): row for row in rows if "region" in (row.get("dimensions") or ())}


def _value(info: Row, region: str) -> float | None:
    """The value in the region: rows come from the more specific to the less. None: without a limit.

    JSON of protocol buffers leaves out a value that is 0. Source: as `quotas`.
    """
    for one in info.get("dimensionsInfos") or ():
        if (one.get("dimensions") or {}).get("region", region) == region:
            value = str((one.get("details") or {}).get("value", 0))
            return None if value == UNLIMITED else float(value)
    return 0.0


def _request(project: Project, info: Row, wanted: int) -> str:
    return (
        f"gcloud beta quotas preferences create --project={project.on.project} --service={_SERVICE} "
        f"--quota-id={info['quotaId']} --preferred-value={wanted} --dimensions=region={project.spec.region}"
    )
