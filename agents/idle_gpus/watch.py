"""Main program of the idle GPU watcher in its pod; standard library only.

It queries Prometheus and the API server periodically, announces, and stops. On any failure nothing is
stopped.
"""

import argparse
import functools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.idle_gpus import decisions
from agents.idle_gpus.actions import Actions
from agents.idle_gpus.decisions import IdlePolicy, IdleVerdict, is_doubtful, judge, last_checkpoint
from agents.idle_gpus.history import PodHistory
from agents.idle_gpus.holders import Holder, bare, holders
from agents.idle_gpus.measures import QUERIES, Activity, activities
from agents.shared.api_server import ApiServer, ApiServerError, say
from agents.shared.dcgm import STEP_S, PodKey
from agents.shared.exposition import PrometheusMetric, Sample, text
from agents.shared.health import Health
from agents.shared.jobs import RUNNING_PODS
from agents.shared.prometheus import PrometheusError, over

# Several rounds, with a slow API server.
_PATIENCE_S, _ROUNDS = 600.0, 4

Judged = Sequence[tuple[Holder, IdleVerdict]]


def asked(prometheus: str, window_s: float, now: float) -> dict[PodKey, Activity]:
    """The activity of all pods in the window before `now`. Raises PrometheusError."""
    begin, end = now - window_s, now
    return activities([over(prometheus, query, begin, end, STEP_S) for query in QUERIES], begin, end)


def measured(
    judged: Judged, stopped: Mapping[str, int], now: float, *, blind: bool, interval_s: float
) -> str:
    """The program's own metrics, in the text format of Prometheus."""
    idle: list[Sample] = [
        ({"namespace": pod.namespace, "pod": pod.name, "owner": pod.owner}, pod.gpus)
        for holder, verdict in judged
        if verdict.state == decisions.IDLE
        for pod in holder.pods
    ]
    ages: list[Sample] = [
        ({"namespace": holder.namespace, "holder": holder.name}, round(max(0.0, now - at)))
        for holder, _ in judged
        if (at := last_checkpoint(holder, now)) is not None
    ]
    unknown = sum(verdict.state == decisions.UNKNOWN for _, verdict in judged)
    ended: list[Sample] = [({"kind": kind}, count) for kind, count in stopped.items()]
    return text(
        [
            PrometheusMetric("trainstack_idle_gpus", "gauge", idle),
            PrometheusMetric("trainstack_checkpoint_age_seconds", "gauge", ages),
            # Of the policy, so that a rule can compare ages with it.
            PrometheusMetric("trainstack_checkpoint_interval_seconds", "gauge", [({}, interval_s)]),
            PrometheusMetric("trainstack_idle_unknown", "gauge", [({}, unknown)]),
            PrometheusMetric("trainstack_idle_blind", "gauge", [({}, int(blind))]),
            PrometheusMetric("trainstack_idle_stopped_total", "counter", ended),
        ]
    )


class IdleWatch:
    """The loop of the program."""

    def __init__(self, server: ApiServer, given: argparse.Namespace) -> None:
        self._server, self._given = server, given
        self._policy = IdlePolicy(
            window_s=given.minutes * 60,
            grace_s=given.grace_minutes * 60,
            stop_jobs=given.jobs == "stop",
            interval_s=given.interval_s,
            startup_s=given.startup_s,
        )
        self._history = PodHistory(self._policy.bound_s)
        self._actions = Actions(server, self._history)
        self.text = self._text([], 0.0, blind=True)

    def round(self) -> None:
        """Evaluate all holders once and act; what fails is reported, and tried again in the next round."""
        now = time.time()
        found = self._history.complete(holders(self._pods(), self._given.interactive_pools), now)
        blind = False
        activity: dict[PodKey, Activity] = {}
        try:
            activity = asked(self._given.prometheus, self._policy.window_s, now)
        except PrometheusError as error:
            blind = True
            say(f"no data, so nothing is stopped: {error}")
        judged = [(holder, judge(holder, activity, self._policy, now)) for holder in found]
        if any(is_doubtful(holder, verdict.state, self._policy, now) for holder, verdict in judged):
            try:
                longer = asked(self._given.prometheus, self._policy.bound_s, now)
            except PrometheusError as error:
                say(f"protected holders stay protected, and announcements stay: {error}")
            else:
                judged = [(one, judge(one, activity, self._policy, now, longer)) for one in found]
        for holder, verdict in judged:
            what = f"{holder.namespace}/{holder.name}: {verdict.action}"
            self._apart(what, functools.partial(self._actions.take, holder, verdict, now))
        self.text = self._text(judged, now, blind=blind)

    def _text(self, judged: Judged, now: float, *, blind: bool) -> str:
        stopped = self._actions.stopped
        return measured(judged, stopped, now, blind=blind, interval_s=self._policy.interval_s)

    def _pods(self) -> list[Mapping[str, Any]]:
        """Pods that are not ended, of the namespaces that can be read."""
        found: list[Mapping[str, Any]] = []
        for namespace in self._given.namespaces:
            every = self._server.every(f"/api/v1/namespaces/{namespace}/pods", fieldSelector=RUNNING_PODS)
            self._apart(namespace, functools.partial(found.extend, (bare(pod) for pod in every)))
        return found

    def _apart(self, what: str, act: Callable[[], None]) -> None:
        """Report the failure of an action, and go on with others."""
        try:
            act()
        except (ApiServerError, OSError) as error:
            say(f"{what}: {error}")


def _given(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="idle")
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--prometheus", required=True)
    parser.add_argument("--namespaces", type=json.loads, required=True)
    parser.add_argument("--interactive-pools", type=json.loads, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--grace-minutes", type=float, required=True)
    parser.add_argument("--jobs", choices=("announce", "stop"), required=True)
    parser.add_argument("--interval-s", type=float, required=True)
    parser.add_argument("--startup-s", type=float, required=True)
    parser.add_argument("--every-s", type=float, required=True)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run until the pod ends."""
    given = _given(arguments)
    watch = IdleWatch(ApiServer(given.account), given)
    health = Health(given.port, lambda: watch.text, max(_PATIENCE_S, _ROUNDS * given.every_s))
    while True:
        watch.round()
        health.beat()
        time.sleep(given.every_s)


if __name__ == "__main__":
    main()
