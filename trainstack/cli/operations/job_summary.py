"""Fields of a stack without a cluster: at the end of `up`, and in `status`."""

from collections.abc import Iterator

from infra.outputs.jobs import JobOutputs


def built(exported: JobOutputs) -> str:
    """Service, people and machines, in one line."""
    machines = ", ".join(f"{one.name} ({one.machine}, {one.purchase})" for one in exported.machines)
    return f"{exported.service} for {len(exported.people)} people; machines {machines}"


def fields(exported: JobOutputs, *, verbose: bool = True) -> list[tuple[str, str]]:
    """Stores, the last validation and, with `verbose`, budgets and the schedule of validations."""
    found = [("tracking", exported.tracking_uri), ("checkpoints", exported.checkpoint_uri)]
    for one in exported.budgets if verbose else ():
        action = "stops jobs over budget" if one.over_budget == "stop" else "reports jobs over budget"
        found.append(("budget", f"{one.scope} {one.value}: ${one.monthly_usd:,.0f} a month, {action}"))
    if exported.smoke is not None:
        found.append(("smoke result", exported.smoke.result_uri))
        found += [("repeated", exported.smoke.schedule or "never")] if verbose else []
    return found


def status_fields(exported: JobOutputs) -> Iterator[tuple[str, str]]:
    """The fields of `trainstack status`."""
    yield "stack", f"{exported.stack} ({exported.cloud}, {exported.region}, profile {exported.profile})"
    yield "jobs", built(exported)
    for one in exported.people:
        yield "person", f"{one.name} ({one.team}): {one.role}"
    yield from fields(exported)
