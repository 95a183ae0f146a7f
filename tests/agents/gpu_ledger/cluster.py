"""An API server in memory with the namespaces of several teams, as far as the collector uses it."""

import base64
import copy
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from agents.gpu_ledger import book_text, books, collector
from agents.gpu_ledger.archive import Archive
from agents.gpu_ledger.book_store import NAME, text_of
from agents.gpu_ledger.collector import Collector
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.row import LedgerRow
from agents.queued_jobs.reasons import RETRYABLE
from agents.shared.api_server import ApiServerError
from agents.shared.jobs import path
from tests.agents.gpu_ledger.workloads import MIDNIGHT

JOBS = [path(kind) for kind in RETRYABLE]
# Of all values of a ConfigMap (k8s.io/api core/v1, `MaxSecretSize`).
MOST_BYTES = 1 << 20


class KilledError(Exception):
    """The collector is killed."""


class Cluster:
    """Workloads and ConfigMaps with versions; changes are watched from any version."""

    def __init__(self, *namespaces: str) -> None:
        self.namespaces = namespaces or ("team-a",)
        self.clock, self.steady, self.version_now = MIDNIGHT, 0.0, 1
        self.workloads: dict[str, dict[str, Any]] = {}
        self.jobs: list[dict[str, Any]] = []
        """Jobs of the first kind."""
        self.changes: list[tuple[int, str, dict[str, Any]]] = []
        self.config_maps: dict[tuple[str, str], dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.refuses: Callable[[str, str], int] = lambda method, path: 0
        """Status of an error for a request; 0: none."""
        self.terms: dict[str, Any] = {"prices": {}}
        """Prices and shares of GPUs in the configuration."""
        self.gone = False
        """The next watch starts too late."""

    def put(self, workload: Mapping[str, Any], kind: str = "MODIFIED") -> None:
        """Kueue writes a Workload, or deletes it."""
        body = copy.deepcopy(dict(workload))
        self.version_now += 1
        body["metadata"]["resourceVersion"] = str(self.version_now)
        self.changes.append((self.version_now, kind, body))
        if kind == "DELETED":
            del self.workloads[body["metadata"]["uid"]]
        else:
            self.workloads[body["metadata"]["uid"]] = body

    def now(self) -> int:
        return self.clock

    def version(self, path: str) -> str:
        self._count("GET", path)
        return str(self.version_now)

    def paged(self, path: str, **selectors: str) -> Iterator[tuple[list[Any], str]]:
        if path in JOBS:
            # Not counted.
            yield self.jobs if path == JOBS[0] else [], str(self.version_now)
            return
        namespace = path.split("/namespaces/")[1].split("/", maxsplit=1)[0]
        found = [body for body in self.workloads.values() if body["metadata"]["namespace"] == namespace]
        for start in range(0, max(1, len(found)), 500):
            self._count("LIST", path)
            yield found[start : start + 500], str(self.version_now)

    def watched(self, path: str, version: str, seconds: float) -> Iterator[Any]:
        self._count("WATCH", path)
        if self.gone:
            self.gone = False
            raise ApiServerError(410, "too old resource version")
        if path in JOBS:
            return
        for _, kind, body in [one for one in self.changes if one[0] > int(version)]:
            yield {"type": kind, "object": body}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Mapping[str, Any]]:
        try:
            return 200, self.must(method, path, body)
        except ApiServerError as error:
            return error.status, {"message": str(error)}

    def must(self, method: str, path: str, body: Any = None) -> Mapping[str, Any]:
        self._count(method, path)
        if "/configmaps" not in path:
            return {**(body or {})}
        namespace = path.split("/namespaces/")[1].split("/", maxsplit=1)[0]
        name = body["metadata"]["name"] if method == "POST" else path.rpartition("/")[2]
        known = self.config_maps.get((namespace, name))
        if method == "GET":
            if known is None:
                raise ApiServerError(404, "not found")
            return known
        if (method == "POST") == (known is not None):
            raise ApiServerError(409 if known else 404, "exists or not")
        given = body["metadata"].get("resourceVersion")
        if known and given and given != known["metadata"]["resourceVersion"]:
            raise ApiServerError(409, "the object has been modified")
        if sum(len(base64.b64decode(text)) for text in body.get("binaryData", {}).values()) > MOST_BYTES:
            raise ApiServerError(422, "Too long: must have at most 1048576 bytes")
        self.version_now += 1
        kept = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version_now)}}
        self.config_maps[namespace, name] = kept
        return kept

    def _count(self, method: str, path: str) -> None:
        self.requests.append((method, path))
        if status := self.refuses(method, path):
            raise ApiServerError(status, "refused by the test") if status > 0 else KilledError

    # ----------------------------------------------------------------------------------------------------

    def collector(self, log: Callable[[str], None] = lambda _: None, **budget: Any) -> Collector:
        """A collector that begins; `budget`: of every team."""
        given = {"usd": None, "gpu_hours": None, "stop": False, "exempt": [], **budget}
        config = {
            "teams": {name: name for name in self.namespaces},
            "budgets": dict.fromkeys(self.namespaces, given) if budget else {},
            **self.terms,
            "prometheus": None,
        }
        return Collector(self, config, log)  # type: ignore[arg-type]  # what it uses of the API server

    def run(self, made: Collector | None = None, *, rounds: int = 3, every_s: int = 60) -> Collector:
        """Let a collector go around, with a minute between rounds; then it is killed."""
        made, left = made or self.collector(), [rounds]

        def beat() -> None:
            if not left[0]:
                raise KilledError
            left[0] -= 1
            self.clock += every_s
            self.steady += every_s

        with self.clocked(), pytest.raises(KilledError):
            made.run(beat)
        return made

    @contextmanager
    def clocked(self) -> Iterator[None]:
        """The collector's own clock goes steadily, also where that of the API server jumps."""
        own = SimpleNamespace(
            monotonic=lambda: self.steady, time=lambda: float(MIDNIGHT) + self.steady, sleep=lambda _: None
        )
        with pytest.MonkeyPatch.context() as patched:
            for module in (books, collector):
                patched.setattr(module, "time", own)
            yield

    def book(self, namespace: str = "team-a") -> TeamBook:
        """A book as it is stored."""
        return book_text.parse(text_of(self.config_maps[namespace, NAME]))

    def rows(self, namespace: str = "team-a") -> list[LedgerRow]:
        """All rows of a book and of the archives that it lists."""
        book = self.book(namespace)
        found = book.totals()
        for month, number in book.archived.items():
            archive = Archive.parse(text_of(self.config_maps[namespace, f"{NAME}-{month}"]))
            found += archive.at(number).rows
        return found

    def held(self, namespace: str = "team-a") -> int:
        """Device-seconds of all rows."""
        return sum(row.held_s for row in self.rows(namespace))

    def size(self, namespace: str = "team-a", name: str = NAME) -> int:
        """Bytes of a ConfigMap as they count for its limit."""
        return len(base64.b64decode(next(iter(self.config_maps[namespace, name]["binaryData"].values()))))


def metric(made: Collector, name: str, **labels: str) -> float | None:
    """The value of one series; None without it."""
    parts = [f"{key}={json.dumps(value)}" for key, value in labels.items()]
    for line in made.text.splitlines():
        if line.startswith(f"{name}{{") and all(part in line for part in parts):
            return float(line.rpartition(" ")[2])
    return None
