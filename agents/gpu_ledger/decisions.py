"""Decide on Kueue's requests whether jobs start, one team at a time; runs in a pod.

Every decision is for one version of a Workload: after a concurrent change the API server rejects it, and the
change causes another request. So no decision reaches a job that began to run meanwhile.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.gpu_ledger import check
from agents.gpu_ledger.attempts import WHOLE, Parts, Seen, seen
from agents.gpu_ledger.budget import BudgetVerdict, GpuBudget, JobRequest, LimitUse, judge, uses
from agents.gpu_ledger.entries import Note
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.price import Prices
from agents.shared.api_server import ApiServer, ApiServerError, say
from agents.shared.events import event
from agents.shared.kueue import API, VERSION
from agents.shared.times import stamp

Object = Mapping[str, Any]

# Percentages of a budget at which a warning is sent, once a month each.
WARNINGS = (50, 80, 100)
# The Workload changed or is gone: its own change is handled next.
_OVERTAKEN = (404, 409)


@dataclass(frozen=True)
class BudgetTeam:
    """A team with a budget."""

    namespace: str
    budget: GpuBudget


class Decisions:
    """The decisions on the Workloads of one team."""

    def __init__(self, server: ApiServer, team: BudgetTeam, prices: Prices, parts: Parts = WHOLE) -> None:
        self._server, self._team, self._prices, self._parts = server, team, prices, parts
        self._workloads: dict[str, Object] = {}
        """Workloads that request, wait or were admitted, by UID."""
        self._sent_back: dict[str, JobRequest] = {}

    @property
    def waiting(self) -> int:
        """Number of Workloads that wait for room in the budget."""
        return sum(check.waits(one) for one in self._workloads.values())

    def uses(self, book: TeamBook, now: int, called: Iterable[JobRequest] = ()) -> list[LimitUse]:
        """The use of the team's budget, as if the jobs `called` were admitted, too."""
        promised = [one for one in self._workloads.values() if check.promised(one)]
        let_in = [_asked(one, state) for one in promised if (state := seen(one, self._parts))]
        return uses(self._team.budget, book, [*let_in, *called], self._prices, now)

    def observe(self, workload: Object, book: TeamBook, now: int) -> None:
        """Handle the current state of a Workload; decide where it requests that."""
        uid = workload["metadata"]["uid"]
        state = seen(workload, self._parts) if self._team.budget.stop else None
        if state is None or state.finished is not None:
            self.gone(uid)
            return
        self._workloads[uid] = workload
        if not check.asks(workload):
            return
        # A second deactivation for the same reason is not recorded.
        known, asked = uid in self._sent_back, _asked(workload, state)
        if check.runs(workload):
            # It started before its queue had the check.
            verdict = BudgetVerdict(True, "runs already")
        else:
            verdict = judge(asked, self._team.budget, self.uses(book, now), self._prices, now)
        patch = check.answer(workload, starts=verdict.starts, why=verdict.why, now=now)
        if self._patch(workload, patch, "/status"):
            if not verdict.starts:
                self._sent_back[uid] = asked
                patched = self._workloads[uid]
                self._patch(patched, check.activated(patched, active=False), "")
            if verdict.starts or not known:
                self._record(workload, state, verdict, book, now)

    def forget(self) -> None:
        """Forget all Workloads, before all of them are observed anew."""
        self._workloads.clear()
        self._sent_back.clear()

    def gone(self, uid: str) -> None:
        """Handle a Workload that is finished or deleted."""
        self._workloads.pop(uid, None)
        self._sent_back.pop(uid, None)

    def call(self, book: TeamBook, now: int) -> None:
        """Activate waiting jobs that fit now, oldest first, and those that another process deactivated.

        Jobs whose decision failed are decided again.
        """
        for workload in [*self._workloads.values()]:
            if check.asks(workload):
                self.observe(workload, book, now)
        rows = sorted(self._workloads.values(), key=lambda one: str(one["metadata"]["creationTimestamp"]))
        waiting = [one for one in rows if check.waits(one)]
        called: list[JobRequest] = []
        found = self.uses(book, now) if waiting else []
        for workload in waiting:
            asked = self._sent_back.get(workload["metadata"]["uid"])
            if asked is not None:
                if not judge(asked, self._team.budget, found, self._prices, now).starts:
                    continue
                called.append(asked)
                found = self.uses(book, now, called)
            self._patch(workload, check.activated(workload, active=True), "")

    def warn(self, book: TeamBook, now: int) -> None:
        """Warn once a month, for each limit, that a percentage is used."""
        month = stamp(now)[:7]
        for use in self.uses(book, now):
            passed = max((one for one in WARNINGS if use.ratio * 100 >= one), default=0)
            if passed > book.warned.get(key := f"{month} {use.unit}", 0):
                book.warned[key] = passed
                amounts = f"{use.used:,.2f} of {use.limit:,.2f}"
                words = f"{passed} % of the {use.unit} budget of {month} are used: {amounts}"
                book.note(Note(now, "warned", use.unit, words))
                on = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gpu-ledger"}
                self._event(on, "BudgetUsed", words, "Warning", now)

    # --------------------------------------------------------------------------------------------------

    def _record(
        self, workload: Object, state: Seen, verdict: BudgetVerdict, book: TeamBook, now: int
    ) -> None:
        if not verdict.starts:
            what, reason, kind = "held", "OverBudget", "Warning"
        elif verdict.exemption:
            what, reason, kind = "exempt", "BudgetExempt", "Normal"
        else:
            return
        book.note(Note(now, what, state.name, verdict.why))
        metadata = workload["metadata"]
        on = {key: metadata[key] for key in ("name", "uid")}
        on |= {"apiVersion": VERSION, "kind": "Workload"}
        self._event(on, reason, verdict.why, kind, now)

    def _patch(self, workload: Object, patch: Object, part: str) -> bool:
        """Change a Workload or its status; False when it changed meanwhile, which is handled next."""
        metadata = workload["metadata"]
        path = f"{API}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}{part}"
        try:
            self._workloads[metadata["uid"]] = self._server.must("PATCH", path, patch)
        except ApiServerError as error:
            if error.status not in _OVERTAKEN:
                raise
            return False
        return True

    def _event(self, on: Object, reason: str, words: str, kind: str, now: int) -> None:
        """Create an Event on an object; it is for users, so a failure stops nothing."""
        namespace = self._team.namespace
        body = event(
            on, namespace, reason=reason, words=words, kind=kind, by=check.CONTROLLER, at=now,
            prefix="gpu-budget-",
        )  # fmt: skip
        status, response = self._server.ask("POST", f"/api/v1/namespaces/{namespace}/events", body)
        if status >= 300:
            say(f"no event {reason} in {namespace}: {status} {response.get('message')}")


def _asked(workload: Object, state: Seen) -> JobRequest:
    owners = workload["metadata"].get("ownerReferences") or ()
    job = next((str(one["name"]) for one in owners), state.name)
    return JobRequest(job, state.priority, state.asked, state.left_s)
