"""Opens and closes pools with windows: answers for their AdmissionChecks, for as long as the stack stands.

Kueue gives a job its quota and then asks the checks of its flavor. A job that the pool takes now is Ready.
Others are deactivated, by which Kueue takes their quota back, and stops them where they run; they are
activated again once the pool takes them (docs/adr/0033: why a check is neither Retry nor Rejected). While
this program is away nobody is stopped, and no job starts on such a pool. It runs in a pod of its own, with
the standard library only.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agents.shared.api_server import ApiServer, Object, RefusedError, say
from agents.shared.health import Health

from .measures import Measures
from .verdicts import LONGEST, Verdict, admit, keep, said_by
from .windows import Window, read
from .workloads import PENDING, Workloads, called, check_of, is_away, is_reserved, sent_away_by

TICK_S = 5.0
_RETRY_S = 1.0


class Keeper:
    """The jobs that have something to do with a window."""

    def __init__(
        self, workloads: Workloads, windows: Mapping[str, Window], clock: Callable[[], datetime]
    ) -> None:
        self._workloads, self._windows, self._clock = workloads, windows, clock
        self._seen: dict[str, Object] = {}
        # When those that were sent away are looked at again, by uid.
        self._look_at: dict[str, datetime] = {}
        self.measures = Measures(windows, clock)

    def begin(self) -> str:
        """Say that the checks are answered for, look at every job, and from where changes are to be watched.

        Raises RefusedError and OSError, as every method that asks the API server.
        """
        for name in self._windows:
            self._workloads.activate_check(name, self._clock())
        found: dict[str, Object] = {}
        version = ""
        # Finished Workloads may be many: none of them is kept longer than its page.
        for page, version in self._workloads.paged():  # noqa: B007 - the last one
            found |= {row["metadata"]["uid"]: row for row in page if self._concerns(row)}
        self._seen = found
        self._look_at.clear()
        self.tick()
        return version

    def changed(self, kind: str, workload: Object) -> None:
        """A Workload was ADDED, MODIFIED or DELETED."""
        uid = workload["metadata"]["uid"]
        self._seen.pop(uid, None)
        if kind == "DELETED" or not self._concerns(workload):
            self._look_at.pop(uid, None)
        else:
            self._seen[uid] = workload
            self._look(workload)

    def tick(self) -> None:
        """Time has gone on: pools open and close."""
        for workload in list(self._seen.values()):
            self._look(workload)

    def _concerns(self, workload: Object) -> bool:
        return is_away(workload) or (is_reserved(workload) and check_of(workload, self._windows) is not None)

    def _look(self, workload: Object) -> None:
        now, uid = self._clock(), workload["metadata"]["uid"]
        if not is_away(workload):
            self._answer(workload, now)
        elif now >= self._look_at.get(uid, now):
            self._look_at[uid] = now + self._call_back(workload, now)

    def _answer(self, workload: Object, now: datetime) -> None:
        """Say whether a job that has its quota starts, or goes on."""
        check = check_of(workload, self._windows)
        if check is None:
            return
        window = self._windows[check["name"]]
        if check["state"] == PENDING:
            verdict: Verdict | None = self._admitted(window, workload, now)
        else:
            # How long it takes does not matter any more.
            verdict = keep(window.upcoming(now, said_by(workload, None).priority), now)
        if verdict is None:
            return
        if verdict.welcome:
            done = self._workloads.ready(workload, check["name"], verdict.words, now)
        else:
            done = self._workloads.send_away(workload, check["name"], verdict.words, now)
        if done:
            self._told(window, workload, verdict)

    def _call_back(self, workload: Object, now: datetime) -> timedelta:
        """Activate a job that was sent away, if the pool takes it now; else, when to look again."""
        window = self._windows.get(sent_away_by(workload))
        verdict = self._admitted(window, workload, now) if window else None
        if verdict is None or verdict.welcome:
            self._workloads.call_back(workload)
        return (verdict and verdict.again) or LONGEST

    def _admitted(self, window: Window, workload: Object, now: datetime) -> Verdict:
        run = said_by(workload, self._workloads.owner(workload))
        return admit(run, window.upcoming(now, run.priority), now)

    def _told(self, window: Window, workload: Object, verdict: Verdict) -> None:
        # What was written comes back as a change; until then nothing is said twice.
        self._seen.pop(workload["metadata"]["uid"], None)
        self.measures.count(window.pool, welcome=verdict.welcome)
        say(f"{called(workload)} {'may run' if verdict.welcome else 'is sent away'}: {verdict.words}")


def run(workloads: Workloads, keeper: Keeper, beat: Callable[[], None]) -> None:
    """Answer until the process ends. What fails is said once, and tried again."""
    said, version = "", ""
    while True:
        try:
            version = version or keeper.begin()
            for change in workloads.watched(version, TICK_S):
                version = change["object"]["metadata"]["resourceVersion"]
                if change["type"] != "BOOKMARK":
                    keeper.changed(change["type"], change["object"])
            keeper.tick()
            said = ""
        except (RefusedError, OSError) as error:
            version, words = "", str(error)
            if words != said:
                say(words)
            said = words
            time.sleep(_RETRY_S)
        # It is well as long as it tries: a restart brings no API server back.
        beat()


def main() -> int:
    """Keep the windows that the arguments give."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=read, required=True)
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    asked = parser.parse_args()
    workloads = Workloads(ApiServer(asked.account))
    keeper = Keeper(workloads, asked.windows, lambda: datetime.now(UTC))
    health = Health(asked.port, keeper.measures.text, patience_s=90)
    run(workloads, keeper, health.beat)
    return 0


if __name__ == "__main__":
    sys.exit(main())
