"""A Prometheus that answers what a test says, and a cluster with pods, for tests of what GPUs did."""

import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps
from typing import Any

from agents.gpu_ledger.attempts import seen
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.usage import GpuUsage
from tests.agents.gpu_ledger.workloads import MIDNIGHT, workload

T = MIDNIGHT + 36_000
PROFILED, UTILIZED = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"
Share = Callable[[float], float | None]


@dataclass
class Prometheus:
    """Answers ranges of series, which are functions of the time."""

    series: list[tuple[str, Mapping[str, str], Share]] = field(default_factory=list)
    ranges: list[tuple[float, float]] = field(default_factory=list)
    away: bool = False
    url: str = ""

    def answer(self, words: Mapping[str, list[str]]) -> dict[str, Any]:
        begin, end, step = (float(words[key][0]) for key in ("start", "end", "step"))
        self.ranges.append((begin, end))
        times = [begin + index * step for index in range(int((end - begin) // step) + 1)]
        result = [
            {"metric": labels, "values": [[at, str(said)] for at in times if (said := share(at)) is not None]}
            for metric, labels, share in self.series
            if metric in words["query"][0]
        ]
        return {"status": "success", "data": {"resultType": "matrix", "result": result}}


@contextmanager
def answering() -> Iterator[Prometheus]:
    """One that listens at a port of this machine."""
    said = Prometheus()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urllib.parse.urlsplit(self.path)
            body = dumps(said.answer(urllib.parse.parse_qs(address.query))).encode()
            self.send_response(503 if said.away or address.path != "/api/v1/query_range" else 200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    said.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield said
    finally:
        server.shutdown()
        server.server_close()


class Cluster:
    """The API server, as far as it is asked: which pods there are."""

    def __init__(self, **jobs: str) -> None:
        self.jobs = jobs

    def every(self, path: str, **selectors: str) -> Iterator[dict[str, Any]]:
        assert path == "/api/v1/namespaces/team-a/pods"
        label = "batch.kubernetes.io/job-name"
        for pod, job in self.jobs.items():
            yield {"metadata": {"name": pod, "labels": {label: job}}}


def of_pod(pod: str, gpu: str, share: float | Share, metric: str = PROFILED) -> tuple[str, Any, Share]:
    labels = {"namespace": "team-a", "pod": pod, "UUID": gpu}
    return metric, labels, share if callable(share) else lambda at: share


def usage(prometheus: Prometheus, cluster: Any, project: str = "llama") -> GpuUsage:
    """One that knows the job `train`."""
    body = workload(admitted=T - 600, labels={"trainstack.dev/project": project})
    body["metadata"]["ownerReferences"] = [{"name": "train"}]
    made, said = GpuUsage(cluster, prometheus.url), seen(body)
    assert said
    made.observe(body, said)
    return made


def total(book: TeamBook) -> tuple[int, int]:
    """Measured and used GPU-seconds."""
    return sum(row.measured_s for row in book.totals()), sum(row.used_s for row in book.totals())
