"""Required and unsupported parts of a spec by layout, with and without a cluster."""

from collections.abc import Iterator

from infra.errors import Problem
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from infra.stackspec.stack import StackSpec
from infra.stackspec.unions import describe

_NO_CLUSTER = "is not supported without a cluster"


def missing(spec: StackSpec, _: ClusterLayout) -> Iterator[Problem]:
    """A cluster needs a tracking server, and the cloud's settings for clusters; it has no others."""
    if spec.tracking is None:
        yield missing_problem("tracking", describe(StackSpec, "tracking"))
    for name in spec.on.needed_by_clusters:
        if not getattr(spec.on, name):
            yield missing_problem(f"on.{name}", describe(type(spec.on), name))
    for name in spec.on.never_in_clusters:
        if getattr(spec.on, name):
            rule = "is only for a stack without a cluster"
            yield Problem(f"on.{name}", None, rule, "Leave it out.", code="needs-no-cluster")
    if spec.budget.over_budget == "stop":
        rule = "the bill does not split shared nodes by team, so it cannot stop jobs"
        fix = "Set teams[].over_budget to stop, with monthly_usd or monthly_gpu_hours."
        yield Problem("budget.over_budget", "stop", rule, fix, code="stop-needs-team-budgets")


def superfluous(spec: StackSpec, _: SmallLayout) -> Iterator[Problem]:
    """No settings that only apply to a cluster."""
    given: dict[str, object] = {"data.shared_fs": spec.data.shared_fs}
    given |= {"data.homes": spec.data.homes, "smoke.drain": spec.smoke.drain}
    if spec.on.managed_tracking:
        given["tracking"] = spec.tracking
    names = (*spec.on.needed_by_clusters, *spec.on.optional_in_clusters)
    given |= {f"on.{name}": getattr(spec.on, name) for name in names}
    for index, team in enumerate(spec.teams):
        parts = ("gpus", "shares", "members", "monthly_gpu_hours", "budget_exempt")
        given |= {f"teams[{index}].{name}": getattr(team, name) for name in parts}
    for path, value in given.items():
        if value:
            fix = _FIXES.get(path.rpartition(".")[2], "Leave it out.")
            yield Problem(path, _plain(value), _NO_CLUSTER, fix, code="needs-a-cluster")


_FIXES = {
    "shared_fs": "Set null: jobs read from the buckets.",
    "homes": "Set false: notebooks have their own disks.",
    "drain": "Set false: jobs share no machines.",
    "gpus": "Leave it out: only quotas of the account limit jobs.",
    "shares": "Leave it out: machines are not shared.",
    "members": "Leave it out, and list people in layout.people.",
    "monthly_gpu_hours": "Set monthly_usd: the bill separates jobs by tag.",
    "budget_exempt": "Leave it out: an administrator tags a job `trainstack:budget-exempt` with the reason.",
}


def tracked(spec: StackSpec, _: SmallLayout) -> Iterator[Problem]:
    """On Google Cloud MLflow is a container of the stack; on AWS the service runs it."""
    if spec.tracking is None:
        yield missing_problem("tracking", describe(StackSpec, "tracking"))


def missing_problem(path: str, description: str) -> Problem:
    """A key that the layout needs, with the description of its field."""
    rule, fix = "required key is missing", f"Add it: {description}"
    return Problem(path, None, rule, fix, code="required-key-missing")


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump()
    return (
        list(value)
        if isinstance(value, tuple) and all(isinstance(one, str) for one in value)
        else (len(value) if isinstance(value, tuple) else value)
    )
