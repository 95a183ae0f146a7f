"""The rules of queues in plain language; every sentence is derived from the objects of Kueue.

Their effects are tested with a real Kueue: tests/cluster/queues, test_sharing.py, test_flavors.py and
test_operation.py.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agents.gpu_ledger import check
from components.kubernetes.queueing import kueue, kueue_fields, kueue_values
from infra.catalog.kubernetes.kueue import DEFAULT_QUEUE, SAMPLES_QUEUE
from infra.naming import team_namespace
from trainstack.queues.objects import cluster_queue
from trainstack.queues.state import GPU, ClusterQueue

Body = Mapping[str, Any]
_NODES = "kueue.x-k8s.io/provisioning-request"
"""The controller that requests nodes (kubernetes-sigs/kueue v0.19.2
apis/kueue/v1beta2/provisioningrequestconfig_types.go)."""


def sections(bodies: Sequence[Body], teams: Iterable[str]) -> list[tuple[str, list[str]]]:
    """The rules by title; `teams` are the names of all teams in the stack file."""
    queues = _Queues(bodies, teams)
    found = (
        ("Guarantees", _guarantees(queues)),
        ("Borrowing and reclaiming", _borrowing(queues)),
        ("Choice of the pool", _pools(queues)),
        ("Order", _order(queues)),
        ("Budgets", _budgets(queues)),
        ("Validations", _validations(queues)),
        ("Jobs that do not start", _starting()),
    )
    listed = [(title, list(sentences)) for title, sentences in found]
    return [(title, sentences) for title, sentences in listed if sentences]


class _Queues:
    def __init__(self, bodies: Sequence[Body], teams: Iterable[str]) -> None:
        self.bodies = bodies
        self.specs = {body["metadata"]["name"]: body["spec"] for body in self._of("ClusterQueue")}
        self.queues = {
            name: cluster_queue({"metadata": {"name": name}, "spec": spec})
            for name, spec in self.specs.items()
        }
        self.teams = {team_namespace(team): team for team in teams}
        # The queues of each team: the default one, and those that a job has to name.
        self.local_queues: dict[str, dict[str, str]] = {}
        for body in self._of("LocalQueue"):
            namespace = body["metadata"]["namespace"]
            if namespace in self.teams and body["metadata"]["name"] != SAMPLES_QUEUE:
                known = self.local_queues.setdefault(self.teams[namespace], {})
                known[body["metadata"]["name"]] = body["spec"]["clusterQueue"]
        of_teams = {queue for named in self.local_queues.values() for queue in named.values()}
        self.of_teams = [self.specs[name] for name in self.specs if name in of_teams]
        self.of_validations = {name: self.specs[name] for name in self.specs if name not in of_teams}

    def _of(self, kind: str) -> list[Body]:
        return [body for body in self.bodies if body["kind"] == kind]

    @property
    def flavors(self) -> dict[str, Body]:
        return {body["metadata"]["name"]: body["spec"] for body in self._of("ResourceFlavor")}

    @property
    def priorities(self) -> list[Body]:
        return sorted(self._of("WorkloadPriorityClass"), key=lambda body: -int(body["value"]))

    @property
    def shared(self) -> Iterator[tuple[str, str, int]]:
        """Quota of cohorts beyond that of queues: pool, unit, amount."""
        for body in self._of("Cohort"):
            yield from _owned(cluster_queue({"metadata": {"name": ""}, "spec": body["spec"]}))

    def checked(self, controller: str) -> Iterator[tuple[str, Sequence[str]]]:
        """Queues of teams with a check of a controller, and its pools; none means all."""
        names = {
            body["metadata"]["name"]
            for body in self._of("AdmissionCheck")
            if body["spec"]["controllerName"] == controller
        }
        for queue in (queue for doors in self.local_queues.values() for queue in doors.values()):
            strategy = self.specs[queue].get("admissionChecksStrategy") or {}
            for one in strategy.get("admissionChecks", ()):
                if one["name"] in names:
                    yield queue, one.get("onFlavors", ())

    def all_teams(self, *path: str) -> Any:
        """A setting that all team queues share; None where they differ, or have none."""
        found = []
        for spec in self.of_teams:
            value: Any = spec
            for key in path:
                value = (value or {}).get(key)
            found.append(value)
        return found[0] if found and all(one == found[0] for one in found) else None


def _owned(queue: ClusterQueue) -> Iterator[tuple[str, str, int]]:
    """The quota of a queue in each pool, in GPUs or cores: pool, unit, amount."""
    for flavor in queue.flavors:
        gpus = queue.quotas.get((flavor, GPU))
        if gpus and gpus.nominal:
            yield flavor, "GPUs", int(gpus.nominal)
        elif not gpus or not gpus.nominal:
            cores = queue.quotas.get((flavor, "cpu"))
            if cores and cores.nominal:
                yield flavor, "cores", int(cores.nominal)


def _amounts(owned: Iterable[tuple[str, str, int]]) -> str:
    return _and([f"{amount} {unit} of {pool}" for pool, unit, amount in owned])


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def _guarantees(queues: _Queues) -> Iterator[str]:
    for team, doors in queues.local_queues.items():
        owned = [one for queue in doors.values() for one in _owned(queues.queues[queue])]
        yield f"{team} is guaranteed {_amounts(owned) or 'nothing: it runs on idle capacity of others'}."
    for name, spec in queues.of_validations.items():
        if owned := list(_owned(queues.queues[name])):
            pools = _and(list(queues.queues[name].flavors))
            lent = " and lends them while none runs" if _lends(spec) else ""
            yield f"The validation of deployments of {pools} owns {_amounts(owned)}{lent}."
    if left := list(queues.shared):
        yield f"{_amounts(left)} belong to no team: every team can borrow them."


def _lends(spec: Body) -> bool:
    rows = [row for group in spec["resourceGroups"] for one in group["flavors"] for row in one["resources"]]
    return bool(spec.get("cohortName")) and not any("lendingLimit" in row for row in rows)


def _borrowing(queues: _Queues) -> Iterator[str]:
    names = [queue for doors in queues.local_queues.values() for queue in doors.values()]
    limited = [name for name in names if _limits(queues.queues[name])]
    if names and not limited and queues.all_teams("cohortName"):
        yield "A team that needs more borrows any idle capacity, also of other teams, without a limit."
    for name in limited:
        yield f"Queue {name} borrows no more than {_and(_limits(queues.queues[name]))}."
    if queues.all_teams("preemption", "reclaimWithinCohort") == "Any":
        yield (
            "Lent quota is reclaimed when its owner needs it, whatever the priority of the borrower: jobs "
            "are preempted and queued again."
        )
        yield (
            "A team within its guarantee of a pool (GPUs, cores and memory alike) loses no job there to "
            "another team."
        )
    weights = {
        team: queues.queues[doors[DEFAULT_QUEUE]].weight
        for team, doors in queues.local_queues.items()
        if DEFAULT_QUEUE in doors
    }
    if len(weights) > 1 and "fairSharing" in kueue_values.manager_config({}):
        weights_text = ", ".join(f"{team} {_plain(weight)}" for team, weight in weights.items())
        yield (
            f"Borrowed capacity is shared by weight ({weights_text}): a team below its share preempts jobs "
            "of teams that borrow more than theirs."
        )


def _plain(number: Any) -> str:
    return f"{number.normalize():f}"


def _limits(queue: ClusterQueue) -> list[str]:
    return [
        f"{_plain(quota.borrowing_limit)} {resource} of {flavor}"
        for (flavor, resource), quota in queue.quotas.items()
        if quota.borrowing_limit is not None
    ]


def _pools(queues: _Queues) -> Iterator[str]:
    doors = next(iter(queues.local_queues.values()), {})
    tried = list(queues.queues[doors[DEFAULT_QUEUE]].flavors) if DEFAULT_QUEUE in doors else []
    if len(tried) > 1:
        yield f"A job that names no queue tries the pools in this order: {', '.join(tried)}."
    elif tried:
        yield f"A job that names no queue gets pool {tried[0]}."
    if len(tried) > 1 and queues.all_teams("flavorFungibility") == kueue.FUNGIBILITY:
        yield (
            "It takes the first one with room, owned or borrowed; it preempts other jobs only where none has "
            "room."
        )
    for name in doors:
        if name != DEFAULT_QUEUE:
            pools = _and(list(queues.queues[doors[name]].flavors))
            named = f"by the label {kueue.QUEUE_NAME_LABEL}: {name}"
            yield f"{pools} is only for jobs that name its queue, {named}; they get no other pool."
    tainted = [name for name, spec in queues.flavors.items() if kueue.GPU_TAINT in spec.get("nodeTaints", ())]
    if tainted:
        key = kueue.GPU_TAINT["key"]
        yield f"{_and(tainted)}: only for pods that tolerate the taint {key}, as pods with GPUs do."
    if checked := list(dict.fromkeys(flavor for _, at in queues.checked(_NODES) for flavor in at)):
        yield f"{_and(checked)}: all nodes of a job are requested at once, before it starts."


def _order(queues: _Queues) -> Iterator[str]:
    if queues.all_teams("queueingStrategy") == "BestEffortFIFO":
        yield "Jobs of a queue wait by priority, then by age; one that fits can overtake those that do not."
    names = [body["metadata"]["name"] for body in queues.priorities]
    if names:
        yield f"Priorities, by the label {kueue.PRIORITY_LABEL}, the highest first: {', '.join(names)}."
    for body in queues.priorities:
        yield f"{body['metadata']['name']} ({body['value']}): {body['description']}"
    if queues.all_teams("preemption", "withinClusterQueue") == "LowerPriority":
        yield "Without free capacity, a job can preempt jobs of its own queue with a lower priority."


def _budgets(queues: _Queues) -> Iterator[str]:
    asked = {queue for queue, _ in queues.checked(check.CONTROLLER)}
    teams = [team for team, doors in queues.local_queues.items() if asked & {*doors.values()}]
    if teams:
        yield (
            f"Jobs of {_and(teams)} start only while they fit the team's budget of the month, or where the "
            "stack file exempts them; else they wait."
        )
        yield "A running job is never stopped for a budget."


def _validations(queues: _Queues) -> Iterator[str]:
    for name, spec in queues.of_validations.items():
        pools = _and(list(queues.queues[name].flavors))
        reclaims = spec["preemption"]["reclaimWithinCohort"]
        if reclaims == "Any":
            yield f"The validation of {pools} preempts jobs that borrowed its nodes."
        elif reclaims == "LowerPriority":
            kept = (
                " and reserves capacity that becomes idle meanwhile"
                if spec["queueingStrategy"] == "StrictFIFO"
                else ""
            )
            yield f"The validation of {pools} waits for jobs that borrowed its nodes{kept}."
            rank = _rank(queues)
            below = [one["metadata"]["name"] for one in queues.priorities if int(one["value"]) < rank]
            yield f"It preempts only jobs of priority {_and(below)}."
        elif not queues.queues[name].weight and not list(_owned(queues.queues[name])):
            yield "Scheduled validations have no quota: they run on idle capacity, and are preempted first."


def _rank(queues: _Queues) -> int:
    return next(int(one["value"]) for one in queues.priorities if one["metadata"]["name"] == kueue.VALIDATION)


def _starting() -> Iterator[str]:
    waits = kueue_values.manager_config({})["waitForPodsReady"]
    again = waits["requeuingStrategy"]
    yield (
        f"A job whose pods are not all ready {waits['timeout'].removesuffix('m')} minutes after its "
        f"admission is queued again: after {again['backoffBaseSeconds']} s at first, after "
        f"{again['backoffMaxSeconds'] // 60} minutes at the most."
    )
    yield (
        f"After {again['backoffLimitCount']} repetitions it is deactivated, and holds no quota until it is "
        "submitted again."
    )
    yield (
        f"Pods of a preempted job have {kueue_fields.MOST_GRACE_S // 60} minutes to end at the most: a "
        "longer terminationGracePeriodSeconds is refused."
    )
    yield "Kueue starts jobs: its label, its gates and `suspend` of a waiting job cannot be changed."
