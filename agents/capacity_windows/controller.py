"""Controller of the AdmissionChecks of pools with windows: admits jobs, and stops them when a pool closes.

Kueue reserves quota for a job and then requests the checks of its flavor. A job that is admitted is Ready.
Others are deactivated: Kueue releases their quota, and stops them where they run. They are activated again
once the pool admits them (docs/adr/0033: why a check is neither Retry nor Rejected). While this program is
down, no job is stopped, and none starts on such a pool. It runs in a pod of its own, with the standard
library only.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agents.shared.api_server import ApiServer, ApiServerError, Object, say
from agents.shared.health import Health

from .measures import Measures
from .verdicts import LONGEST, AdmissionVerdict, admit, keep, run_limits
from .windows import CapacityWindow, read
from .workloads import PENDING, Workloads, called, check_of, is_away, is_reserved, sent_away_by

# Longest duration of a watch; pools are looked at in between.
TICK_S = 10.0
_GONE = 410
# Wait after an error of the API server, doubled up to the longest one.
_RETRY_S, _MOST_RETRY_S = 1.0, 60.0


class WindowController:
    """Decides on the jobs of pools with windows."""

    def __init__(
        self, workloads: Workloads, windows: Mapping[str, CapacityWindow], clock: Callable[[], datetime]
    ) -> None:
        self._workloads, self._windows, self._clock = workloads, windows, clock
        self._seen: dict[str, Object] = {}
        # When deactivated jobs are evaluated again, by uid.
        self._look_at: dict[str, datetime] = {}
        self.measures = Measures(windows, clock)

    def begin(self) -> str:
        """Activate the checks and evaluate all jobs; returns the version from which changes are watched.

        Raises ApiServerError and OSError, as every method that calls the API server.
        """
        for name in self._windows:
            self._workloads.activate_check(name, self._clock())
        found: dict[str, Object] = {}
        version = ""
        # Finished Workloads may be many: only one page of them is in memory.
        for page, version in self._workloads.paged():  # noqa: B007 - the last one
            found |= {row["metadata"]["uid"]: row for row in page if self._concerns(row)}
        self._seen = found
        self._look_at.clear()
        self.tick()
        return version

    def changed(self, kind: str, workload: Object) -> None:
        """Handle a Workload that was ADDED, MODIFIED or DELETED."""
        uid = workload["metadata"]["uid"]
        self._seen.pop(uid, None)
        if kind == "DELETED" or not self._concerns(workload):
            self._look_at.pop(uid, None)
        else:
            self._seen[uid] = workload
            self._look(workload)

    def tick(self) -> None:
        """Evaluate all jobs again: pools open and close with time."""
        for workload in list(self._seen.values()):
            self._look(workload)

    def _concerns(self, workload: Object) -> bool:
        return is_away(workload) or (is_reserved(workload) and check_of(workload, self._windows) is not None)

    def _look(self, workload: Object) -> None:
        """Evaluate a job. What the API server refuses is reported, and stops no decision on another job."""
        now, uid = self._clock(), workload["metadata"]["uid"]
        try:
            if not is_away(workload):
                self._answer(workload, now)
            elif now >= self._look_at.get(uid, now):
                self._look_at[uid] = now + self._call_back(workload, now)
        except ApiServerError as error:
            self._look_at[uid] = now + LONGEST
            say(f"{called(workload)}: {error}")

    def _answer(self, workload: Object, now: datetime) -> None:
        """Update the check of a job that has its quota: start it, let it run on, or deactivate it."""
        check = check_of(workload, self._windows)
        if check is None:
            return
        window = self._windows[check["name"]]
        if check["state"] == PENDING:
            verdict: AdmissionVerdict | None = self._admitted(window, workload, now)
        else:
            # A running job's duration does not matter any more.
            verdict = keep(window.upcoming(now, run_limits(workload, None).priority), now)
        if verdict is None:
            return
        if verdict.welcome:
            done = self._workloads.ready(workload, check["name"], verdict.words, now)
        else:
            done = self._workloads.send_away(workload, check["name"], verdict.words, now)
        if done:
            self._report(window, workload, verdict)

    def _call_back(self, workload: Object, now: datetime) -> timedelta:
        """Activate a deactivated job if the pool admits it now; returns when to evaluate it again."""
        window = self._windows.get(sent_away_by(workload))
        verdict = self._admitted(window, workload, now) if window else None
        if verdict is None or verdict.welcome:
            self._workloads.call_back(workload)
        return (verdict and verdict.again) or LONGEST

    def _admitted(self, window: CapacityWindow, workload: Object, now: datetime) -> AdmissionVerdict:
        run = run_limits(workload, None)
        period = window.upcoming(now, run.priority)
        if period is not None and period.opens <= now and period.closes is not None:
            # Only now its own limits matter.
            run = run_limits(workload, self._workloads.owner(workload))
        return admit(run, period, now)

    def _report(self, window: CapacityWindow, workload: Object, verdict: AdmissionVerdict) -> None:
        # The write arrives as a change; until then it is not reported twice.
        self._seen.pop(workload["metadata"]["uid"], None)
        self.measures.count(window.pool, welcome=verdict.welcome)
        say(f"{called(workload)} {'may run' if verdict.welcome else 'is sent away'}: {verdict.words}")


def run(workloads: Workloads, keeper: WindowController, beat: Callable[[], None]) -> None:
    """Handle changes until the process ends; errors are logged once and retried."""
    logged, version, wait_s = "", "", _RETRY_S
    while True:
        try:
            version = version or keeper.begin()
            for change in workloads.watched(version, TICK_S):
                version = change["object"]["metadata"]["resourceVersion"]
                if change["type"] != "BOOKMARK":
                    keeper.changed(change["type"], change["object"])
            keeper.tick()
            logged, wait_s = "", _RETRY_S
        except (ApiServerError, OSError) as error:
            text = str(error)
            if text != logged:
                say(text)
            logged = text
            if isinstance(error, ApiServerError) and error.status == _GONE:
                # Changes were missed; otherwise a list of all Workloads would follow every error.
                version = ""
            time.sleep(wait_s)
            wait_s = min(_MOST_RETRY_S, 2 * wait_s)
        # It is healthy while it retries: a restart does not fix the API server.
        beat()


def main() -> int:
    """Run the controller with the windows of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=read, required=True)
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    asked = parser.parse_args()
    workloads = Workloads(ApiServer(asked.account))
    keeper = WindowController(workloads, asked.windows, lambda: datetime.now(UTC))
    health = Health(asked.port, keeper.measures.text, patience_s=90)
    run(workloads, keeper, health.beat)
    return 0


if __name__ == "__main__":
    sys.exit(main())
