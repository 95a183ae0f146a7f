"""`trainstack status`: a stack, its gate, and in a rehearsal the emulated clouds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainstack.cli.output import Format, FormatOption, print_fields, print_json, printable
from trainstack.cli.stack import Rehearse, Stack

if TYPE_CHECKING:  # help needs none of them
    from infra.gate import Gate
    from infra.outputs.cluster import StackOutputs
    from trainstack.cli.operations.firing import FiringAlerts
    from trainstack.cli.operations.session import Session

SCHEMA = "trainstack.status/1"
Fields = Iterator[tuple[str, str]]


def status(stack: Stack = "", rehearse: Rehearse = False, form: FormatOption = Format.TEXT) -> None:
    """Show a stack, its gate and its alerts; in a rehearsal also emulated resources and running workloads."""
    from infra.gate import gates  # noqa: PLC0415
    from infra.outputs import cluster as outputs  # noqa: PLC0415
    from infra.outputs import jobs as job_outputs  # noqa: PLC0415
    from infra.outputs import manager as manager_outputs  # noqa: PLC0415
    from infra.outputs import slurm as slurm_outputs  # noqa: PLC0415
    from trainstack.cli.operations.job_summary import status_fields  # noqa: PLC0415
    from trainstack.cli.operations.results import by_nodes  # noqa: PLC0415
    from trainstack.cli.operations.session import open_session  # noqa: PLC0415
    from trainstack.cli.operations.summary import clusters_of_manager  # noqa: PLC0415
    from trainstack.cli.slurm.system import fields as slurm_fields  # noqa: PLC0415

    session = open_session(stack, rehearse=rehearse)
    found = {key: output.value for key, output in session.engine.outputs().items()}
    resources = [one for one in session.engine.resources() if one.get("custom")]
    jobs = job_outputs.parse(found) if job_outputs.is_of_jobs(found) else None
    manager = manager_outputs.parse(found) if manager_outputs.is_of_manager(found) else None
    slurm = slurm_outputs.parse(found) if slurm_outputs.is_of_slurm(found) else None
    other = jobs or manager or slurm
    exported = outputs.parse(found) if outputs.KEY in found and other is None else None
    record = other or exported
    validations = gates(resources)
    # The gate of jobs and of Slurm has no object in a cluster; an `up` ends only after it has passed.
    wanted = session.spec.validated if session.spec and resources and not (jobs or slurm) else ()
    nodes = list(by_nodes(validations, exported, session.rehearsal)) if exported else []
    live = session.rehearsal.status() if session.rehearsal else None
    alerts = _alerts(session, exported)
    if form is Format.JSON:
        document = {
            "stack": stack,
            "state": "deployed" if record else "unfinished" if resources else "absent",
            "resources": len(resources),
            "outputs": record.model_dump(mode="json") if record else None,
            "gate": _gate(validations, wanted),
            "nodes": nodes,
            "alerts": alerts.document() if alerts else None,
            "rehearsal": live,
        }
        print_json(SCHEMA, document)
        return
    rows: list[tuple[str, str]] = []
    if jobs:
        rows += status_fields(jobs)
    elif slurm:
        rows += slurm_fields(slurm, rehearsed=session.rehearsal is not None)
    elif exported:
        rows += _cluster(exported)
    elif manager:
        rows += [("manager", manager.cluster_name), ("clusters", clusters_of_manager(manager))]
    elif resources:
        rows.append(("stack", f"{stack}: no `up` has finished; {len(resources)} resources exist"))
    else:
        rows.append(("stack", f"{stack}: nothing is deployed"))
    rows += _validations(validations, wanted)
    rows += [("nodes", str(one)) for one in nodes]
    rows += [(name, printable(text)) for name, text in (alerts.fields() if alerts else ())]
    print_fields([*rows, *(_rehearsal(live) if live else ())])


def _validations(validations: "Sequence[Gate]", wanted: "Iterable[str]") -> Fields:
    from infra.gate import lines  # noqa: PLC0415

    for line in lines(validations, wanted):
        name, _, text = line.partition(" ")
        yield name, text.lstrip()


def _alerts(session: "Session", exported: "StackOutputs | None") -> "FiringAlerts | None":
    """Alerts that fire; None for a stack without monitoring in a cluster."""
    from infra.stackspec.layouts import ClusterLayout  # noqa: PLC0415
    from trainstack.cli.operations.firing import FiringAlerts, firing  # noqa: PLC0415

    spec = session.spec
    if exported is None:
        return None
    if spec is None:
        return FiringAlerts(why="the spec, which names the monitoring, cannot be read")
    if not isinstance(spec.layout, ClusterLayout) or spec.layout.monitoring.kind == "none":
        return None
    if session.rehearsal is not None:
        return FiringAlerts(why="a rehearsal does not run what charts install")
    return firing(exported.kubeconfig)


def _gate(found: Sequence["Gate"], wanted: Iterable[str]) -> dict[str, Any]:
    """The gate as JSON; `open` is null where the stack has no validation."""
    missing = sorted({*wanted} - {gate.pool for gate in found})
    is_open = not missing and all(gate.is_open for gate in found) if found or missing else None
    return {"open": is_open, "pools_without_validation": missing, "validations": found}


def _cluster(exported: "StackOutputs") -> Fields:
    place = f"{exported.cloud}, {exported.region}, profile {exported.profile}"
    yield "stack", f"{exported.stack} ({place})"
    yield "cluster", f"{exported.cluster_name}, pools {', '.join(exported.pools)}"
    yield "teams", ", ".join(f"{team.name} ({team.namespace})" for team in exported.teams)
    yield "mlflow", exported.mlflow_url
    if exported.mlflow_way_in is not None:
        yield "browsers", str(exported.mlflow_way_in)
    for run in exported.smoke:
        yield "results", run.result_uri
        yield "repeated", run.schedule or "never"


def _rehearsal(live: Mapping[str, Any]) -> Fields:
    counts = ", ".join(f"{count} {package}" for package, count in sorted(live["resources"].items()))
    yield "emulated", f"{counts or 'no resources'}; {live['engines']} engines attached"
    several = len({workload.get("cluster", "") for workload in live["workloads"]}) > 1
    for workload in live["workloads"]:
        state = "ready" if workload["ready"] else f"{workload['phase']} {workload['reason']}".strip()
        where = f" at {workload['urls'][0]}" if workload["urls"] else ""
        on = f"{workload['cluster']} " if several and workload.get("cluster") else ""
        yield "running", f"{on}{workload['kind']} {workload['namespace']}/{workload['pod']}: {state}{where}"
        yield "", f"log {workload['log']}"
