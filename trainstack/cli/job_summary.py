"""What a person sees of a stack without a cluster: after `up`, and in `status`."""

from collections.abc import Iterator

from infra.outputs.jobs import JobOutputs


def built(exported: JobOutputs) -> str:
    """What there is, in one line."""
    machines = ", ".join(f"{one.name} ({one.machine}, {one.purchase})" for one in exported.machines)
    return f"{exported.service} for {len(exported.people)} people; machines {machines}"


def rows(exported: JobOutputs) -> list[tuple[str, str]]:
    """Where things are, and who is told when money runs out."""
    found = [("tracking", exported.tracking_uri), ("checkpoints", exported.checkpoint_uri)]
    for one in exported.budgets:
        act = "stops what runs" if one.over_budget == "stop" else "tells what it would stop"
        found.append(("budget", f"{one.scope} {one.value}: ${one.monthly_usd:,.0f} a month, {act}"))
    if exported.smoke is not None:
        found.append(("smoke result", exported.smoke.result_uri))
        found.append(("repeated", exported.smoke.schedule or "never"))
    return found


def status(exported: JobOutputs) -> Iterator[str]:
    """The lines of `trainstack status`."""
    place = f"{exported.cloud}, {exported.region}, profile {exported.profile}"
    yield f"stack      {exported.stack} ({place})"
    yield f"jobs       {built(exported)}"
    for one in exported.people:
        yield f"person     {one.name} ({one.team}): {one.role}"
    for name, text in rows(exported):
        yield f"{name:<10} {text}" if len(name) < 10 else f"{name} {text}"
