"""Keep the kubeconfigs of workers valid: a Secret each, with a short-lived token; standard library only.

Kueue connects again when a Secret changes; jobs on the worker are not interrupted.
"""

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agents.clusters.logins import aws_token, google_token
from agents.shared.api_server import ApiServer, ApiServerError, say

LASTS_S = 3600
"""Lifetime of a token in seconds. API servers give at least 600 s."""
RETRY_S = 30.0
_TIMEOUT_S = 30.0
SECRETS = "kueue-system"


@dataclass(frozen=True)
class Worker:
    """A worker, and how to log in to it."""

    name: str
    server: str
    """Address of its API server."""
    authority: str
    """Its authority's certificate, PEM as base64."""
    namespace: str
    account: str
    """The account of which tokens are requested."""
    cluster: str = ""
    """Name of the EKS cluster, whose API server accepts an identity of AWS; empty: one of Google Cloud."""
    region: str = ""
    """Region of the EKS cluster."""


def read(text: str) -> list[Worker]:
    """Workers from their JSON. Raises ValueError and TypeError."""
    return [Worker(**row) for row in json.loads(text)]


def login(worker: Worker) -> str:
    """A bearer token of this pod for a worker. Raises OSError."""
    return aws_token(worker.cluster, worker.region) if worker.cluster else google_token()


class Renewer:
    """Writes the Secrets of all workers, each half of its lifetime before it ends."""

    def __init__(
        self,
        server: ApiServer,
        workers: Sequence[Worker],
        *,
        lasts_s: int = LASTS_S,
        clock: Callable[[], float] = time.monotonic,
        token: Callable[[Worker], str] = login,
    ) -> None:
        self._server, self._workers, self._lasts_s = server, workers, lasts_s
        self._clock, self._token = clock, token
        self._due = dict.fromkeys((worker.name for worker in workers), 0.0)

    def renew(self) -> None:
        """Renew what is due. A worker that does not respond is tried again, and stops no other."""
        for worker in self._workers:
            if self._due[worker.name] > self._clock():
                continue
            try:
                self._write(worker, self._requested(worker))
            except (ApiServerError, OSError, LookupError, ValueError) as error:
                say(f"no new token of cluster {worker.name}: {error}")
                self._due[worker.name] = self._clock() + min(RETRY_S, self._lasts_s / 4)
            else:
                self._due[worker.name] = self._clock() + self._lasts_s / 2

    def _requested(self, worker: Worker) -> str:
        place = f"/api/v1/namespaces/{worker.namespace}/serviceaccounts/{worker.account}/token"
        order = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": self._lasts_s},
        }
        headers = {"Authorization": f"Bearer {self._token(worker)}", "Content-Type": "application/json"}
        data = json.dumps(order).encode()
        request = urllib.request.Request(worker.server + place, data, headers, method="POST")  # noqa: S310
        context = ssl.create_default_context(cadata=base64.b64decode(worker.authority).decode())
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=context) as response:  # noqa: S310
                return str(json.loads(response.read())["status"]["token"])
        except urllib.error.HTTPError as error:
            raise ApiServerError(error.code, error.read().decode(errors="replace")[:200]) from error

    def _write(self, worker: Worker, token: str) -> None:
        place = f"/api/v1/namespaces/{SECRETS}/secrets"
        text = json.dumps(kubeconfig(worker.server, worker.authority, token))
        data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
        status, found = self._server.ask("PATCH", f"{place}/{worker.name}", {"data": data})
        if status == 404:
            metadata = {"name": worker.name, "namespace": SECRETS}
            body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
            status, found = self._server.ask("POST", place, body)
        if status >= 300:
            raise ApiServerError(status, str(found.get("message")))
        say(f"cluster {worker.name} has a new token for {self._lasts_s} s")


def kubeconfig(server: str, authority: str, token: str) -> Mapping[str, object]:
    """A kubeconfig that Kueue accepts: all inline."""
    cluster = {"server": server, "certificate-authority-data": authority}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "worker",
        "clusters": [{"name": "worker", "cluster": cluster}],
        "users": [{"name": "worker", "user": {"token": token}}],
        "contexts": [{"name": "worker", "context": {"cluster": "worker", "user": "worker"}}],
    }
