"""Answers to Kueue's question whether jobs start, one team at a time; runs in a pod.

Every answer is for one version of a Workload: when that changed meanwhile, the API server refuses it, and the
change brings the question again. So nothing is ever said of a job that began to run meanwhile.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.gpu_ledger import check
from agents.gpu_ledger.attempts import Seen, seen
from agents.gpu_ledger.budget import Asked, Budget, Use, Verdict, judge, uses
from agents.gpu_ledger.ledger import Book, Note
from agents.gpu_ledger.price import Prices
from agents.shared.api_server import ApiServer, RefusedError, say
from agents.shared.events import event
from agents.shared.times import stamp

Object = Mapping[str, Any]

WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2"
# Percent of a budget at which people are told, once a month each.
WARNINGS = (50, 80, 100)
# The Workload changed, or is gone: another event tells.
_OVERTAKEN = (404, 409)


@dataclass(frozen=True)
class Team:
    """A team whose budget is held."""

    namespace: str
    budget: Budget


class Decisions:
    """What is decided about the Workloads of one team."""

    def __init__(self, server: ApiServer, team: Team, prices: Prices) -> None:
        self._server, self._team, self._prices = server, team, prices
        self._workloads: dict[str, Object] = {}
        """Those that ask, wait or were let in, by UID."""
        self._sent_back: dict[str, Asked] = {}

    @property
    def waiting(self) -> int:
        """How many Workloads wait for room in the budget."""
        return sum(check.waits(one) for one in self._workloads.values())

    def uses(self, book: Book, now: int, called: Iterable[Asked] = ()) -> list[Use]:
        """What the team's budget is held against, as if the jobs `called` were let in, too."""
        promised = [one for one in self._workloads.values() if check.promised(one)]
        let_in = [_asked(one, said) for one in promised if (said := seen(one))]
        return uses(self._team.budget, book, [*let_in, *called], self._prices, now)

    def observe(self, workload: Object, book: Book, now: int) -> None:
        """Look at a Workload as it is now, and answer where it asks."""
        uid = workload["metadata"]["uid"]
        said = seen(workload) if self._team.budget.stop else None
        if said is None or said.finished is not None:
            self.gone(uid)
            return
        self._workloads[uid] = workload
        if not check.asks(workload):
            return
        # One that is sent back once more, for the same reason, is no news.
        known, asked = uid in self._sent_back, _asked(workload, said)
        if check.runs(workload):
            # It began before its queue had the check.
            verdict = Verdict(True, "runs already")
        else:
            verdict = judge(asked, self._team.budget, self.uses(book, now), self._prices, now)
        patch = check.answer(workload, starts=verdict.starts, why=verdict.why, now=now)
        if self._patch(workload, patch, "/status"):
            if not verdict.starts:
                self._sent_back[uid] = asked
                told = self._workloads[uid]
                self._patch(told, check.activated(told, active=False), "")
            if verdict.starts or not known:
                self._record(workload, said, verdict, book, now)

    def gone(self, uid: str) -> None:
        """A Workload is finished or deleted."""
        self._workloads.pop(uid, None)
        self._sent_back.pop(uid, None)

    def call(self, book: Book, now: int) -> None:
        """Let Kueue queue again who fits by now, the oldest first, and whom another process sent back."""
        rows = sorted(self._workloads.values(), key=lambda one: str(one["metadata"]["creationTimestamp"]))
        waiting = [one for one in rows if check.waits(one)]
        called: list[Asked] = []
        found = self.uses(book, now) if waiting else []
        for workload in waiting:
            asked = self._sent_back.get(workload["metadata"]["uid"])
            if asked is not None:
                if not judge(asked, self._team.budget, found, self._prices, now).starts:
                    continue
                called.append(asked)
                found = self.uses(book, now, called)
            self._patch(workload, check.activated(workload, active=True), "")

    def warn(self, book: Book, now: int) -> None:
        """Tell once a month, for each limit, that so many percent are used."""
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

    def _record(self, workload: Object, said: Seen, verdict: Verdict, book: Book, now: int) -> None:
        if not verdict.starts:
            what, reason, kind = "held", "OverBudget", "Warning"
        elif verdict.exemption:
            what, reason, kind = "exempt", "BudgetExempt", "Normal"
        else:
            return
        book.note(Note(now, what, said.name, verdict.why))
        metadata = workload["metadata"]
        on = {key: metadata[key] for key in ("name", "uid")}
        on |= {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}
        self._event(on, reason, verdict.why, kind, now)

    def _patch(self, workload: Object, patch: Object, part: str) -> bool:
        """Change a Workload, or its status; False when it changed meanwhile, which brings it here again."""
        metadata = workload["metadata"]
        path = f"{WORKLOADS}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}{part}"
        try:
            self._workloads[metadata["uid"]] = self._server.must("PATCH", path, patch)
        except RefusedError as error:
            if error.status not in _OVERTAKEN:
                raise
            return False
        return True

    def _event(self, on: Object, reason: str, words: str, kind: str, now: int) -> None:
        """An Event beside an object: for people, so one that is refused stops nothing."""
        namespace = self._team.namespace
        body = event(
            on, namespace, reason=reason, words=words, kind=kind, by=check.CONTROLLER, at=now,
            prefix="gpu-budget-",
        )  # fmt: skip
        status, answer = self._server.ask("POST", f"/api/v1/namespaces/{namespace}/events", body)
        if status >= 300:
            say(f"no event {reason} in {namespace}: {status} {answer.get('message')}")


def _asked(workload: Object, said: Seen) -> Asked:
    owners = workload["metadata"].get("ownerReferences") or ()
    job = next((str(one["name"]) for one in owners), said.name)
    return Asked(job, said.priority, said.asked, said.left_s)
