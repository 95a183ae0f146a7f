"""Keep the kubeconfigs of workers valid: a Secret each, with a short-lived token; standard library only.

Kueue connects again when a Secret changes; jobs on the worker are not interrupted.
"""

import base64
import json
import time
from collections.abc import Callable, Mapping, Sequence

from agents.clusters.logins import account_token, aws_token, federated_token, google_token
from agents.clusters.workers import Worker, WorkerApi
from agents.shared.api_server import UNREADABLE, ApiServer, ApiServerError, say

LASTS_S = 3600
"""Lifetime of a token in seconds. API servers give at least 600 s."""
RETRY_S = 30.0
_TIMEOUT_S = 5.0
SECRETS = "kueue-system"


def login(worker: Worker, lasts_s: int) -> str:
    """A bearer token of this pod for a worker. Raises OSError.

    `lasts_s`: its lifetime where the token is one of a service account of Google Cloud.
    """
    if worker.cluster:
        return aws_token(worker.cluster, worker.region, worker.role)
    own = federated_token(worker.provider, worker.region) if worker.provider else google_token()
    return account_token(worker.role, lasts_s, own) if worker.role else own


class Renewer:
    """Writes the Secrets of all workers, each half of its lifetime before it ends.

    Each worker is called by a thread of its own.
    """

    def __init__(
        self,
        server: ApiServer,
        workers: Sequence[Worker],
        *,
        lasts_s: int = LASTS_S,
        clock: Callable[[], float] = time.monotonic,
        token: Callable[[Worker, int], str] = login,
    ) -> None:
        self.workers = workers
        self._server, self._lasts_s = server, lasts_s
        self._clock, self._token = clock, token
        self.tokens: dict[str, str] = {}
        """The latest token by worker."""
        self._due = dict.fromkeys((worker.name for worker in workers), 0.0)

    def renew(self, worker: Worker) -> None:
        """Renew the token of a worker where it is due. One that does not respond is tried again."""
        if self._due[worker.name] > self._clock():
            return
        try:
            token = self._requested(worker)
            self.tokens[worker.name] = token
            self._write(worker, token)
        except (ApiServerError, OSError, *UNREADABLE) as error:
            say(f"no new token of cluster {worker.name}: {error}")
            self._due[worker.name] = self._clock() + min(RETRY_S, self._lasts_s / 4)
        else:
            self._due[worker.name] = self._clock() + self._lasts_s / 2

    def _requested(self, worker: Worker) -> str:
        own = self._token(worker, self._lasts_s)
        if not worker.account:
            return own
        place = f"/api/v1/namespaces/{worker.namespace}/serviceaccounts/{worker.account}/token"
        order = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": self._lasts_s},
        }
        made = WorkerApi(worker, own, _TIMEOUT_S).send("POST", place, order)
        return str(made["status"]["token"])

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
    """A kubeconfig that Kueue accepts: all inline. Without an authority, public ones sign the certificate."""
    cluster = {"server": server, **({"certificate-authority-data": authority} if authority else {})}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "worker",
        "clusters": [{"name": "worker", "cluster": cluster}],
        "users": [{"name": "worker", "user": {"token": token}}],
        "contexts": [{"name": "worker", "context": {"cluster": "worker", "user": "worker"}}],
    }
