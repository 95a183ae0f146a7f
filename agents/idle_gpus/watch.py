"""The program that looks for idle GPUs, as a pod runs it; standard library only.

It asks Prometheus and the API server once in a while, announces, and stops. Where anything fails, nothing is
stopped.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.idle_gpus import decisions
from agents.idle_gpus.actions import Actions
from agents.idle_gpus.decisions import Policy, Verdict, judge, last_checkpoint
from agents.idle_gpus.holders import Holder, holders
from agents.idle_gpus.measures import QUERIES, Activity, activities
from agents.shared.api_server import ApiServer, RefusedError, say
from agents.shared.dcgm import STEP_S, PodKey
from agents.shared.exposition import Metric, Sample, text
from agents.shared.health import Health
from agents.shared.prometheus import SilentError, over

# Several rounds, with an API server that takes its time.
_PATIENCE_S = 600.0

Judged = Sequence[tuple[Holder, Verdict]]


def asked(prometheus: str, window_s: float, now: float) -> dict[PodKey, Activity]:
    """The activity of all pods in the window before `now`. Raises SilentError."""
    begin, end = now - window_s, now
    return activities([over(prometheus, query, begin, end, STEP_S) for query in QUERIES], begin, end)


def measured(
    judged: Judged, stopped: Mapping[str, int], now: float, *, blind: bool, interval_s: float
) -> str:
    """What the program says of itself, in the text format of Prometheus."""
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
            Metric("trainstack_idle_gpus", "gauge", idle),
            Metric("trainstack_checkpoint_age_seconds", "gauge", ages),
            # The policy's, so that a rule can compare ages with it.
            Metric("trainstack_checkpoint_interval_seconds", "gauge", [({}, interval_s)]),
            Metric("trainstack_idle_unknown", "gauge", [({}, unknown)]),
            Metric("trainstack_idle_blind", "gauge", [({}, int(blind))]),
            Metric("trainstack_idle_stopped_total", "counter", ended),
        ]
    )


class Watch:
    """One round after the other."""

    def __init__(self, server: ApiServer, given: argparse.Namespace) -> None:
        self._server, self._given = server, given
        self._actions = Actions(server)
        self._policy = Policy(
            window_s=given.minutes * 60,
            grace_s=given.grace_minutes * 60,
            stop_jobs=given.jobs == "stop",
            interval_s=given.interval_s,
            startup_s=given.startup_s,
        )
        self.text = self._told([], 0.0, blind=True)

    def round(self) -> None:
        """Look once, and act. Raises OSError and RefusedError when the API server does not answer."""
        now = time.time()
        found = holders(self._pods(), self._given.interactive_pools)
        blind = False
        activity: dict[PodKey, Activity] = {}
        try:
            activity = asked(self._given.prometheus, self._policy.window_s, now)
        except SilentError as error:
            blind = True
            say(f"nothing is known, and nothing stopped: {error}")
        judged = [(holder, judge(holder, activity, self._policy, now)) for holder in found]
        for holder, verdict in judged:
            try:
                self._actions.take(holder, verdict, now)
            except (RefusedError, OSError) as error:
                say(f"{holder.namespace}/{holder.name}: {verdict.action}: {error}")
        self.text = self._told(judged, now, blind=blind)

    def _told(self, judged: Judged, now: float, *, blind: bool) -> str:
        stopped = self._actions.stopped
        return measured(judged, stopped, now, blind=blind, interval_s=self._policy.interval_s)

    def _pods(self) -> Iterator[Mapping[str, Any]]:
        # Pods that ended may be many, and hold nothing: none of them is kept longer than its page.
        for namespace in self._given.namespaces:
            yield from self._server.every(f"/api/v1/namespaces/{namespace}/pods")


def _given(words: Sequence[str] | None) -> argparse.Namespace:
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
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Look until the pod ends."""
    given = _given(words)
    watch = Watch(ApiServer(given.account), given)
    health = Health(given.port, lambda: watch.text, _PATIENCE_S)
    while True:
        try:
            watch.round()
        except (RefusedError, OSError) as error:
            say(f"the API server: {error}")
        health.beat()
        time.sleep(given.every_s)


if __name__ == "__main__":
    main()
