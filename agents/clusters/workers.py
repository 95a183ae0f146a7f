"""Workers of a manager, and requests to their API servers; standard library only."""

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.shared.api_server import ApiServerError, refusal


@dataclass(frozen=True)
class Worker:
    """A worker, and how to log in to it."""

    name: str
    server: str
    """Address of its API server."""
    authority: str
    """Its authority's certificate, PEM as base64; empty: public authorities sign that of its server."""
    namespace: str
    account: str
    """Tokens of this account are requested; empty: Kueue gets the token of the login."""
    cluster: str = ""
    """Name of the EKS cluster, whose API server accepts an identity of AWS; empty: one of Google Cloud."""
    region: str = ""
    """Region of the EKS cluster, or with a `provider` that of the pod."""
    role: str = ""
    """Identity that logs in, an ARN of AWS or the address of a service account of Google Cloud; empty: the
    pod's own."""
    provider: str = ""
    """Provider in a workload identity pool of Google Cloud which admits the pod's role on AWS; empty: the pod
    is on the worker's cloud."""


def read(text: str) -> list[Worker]:
    """Workers from their JSON. Raises ValueError and TypeError."""
    return [Worker(**row) for row in json.loads(text)]


@dataclass(frozen=True)
class WorkerApi:
    """Requests to the API server of a worker, with a bearer token."""

    worker: Worker
    token: str
    timeout_s: float

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The response. Raises ApiServerError and OSError."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        place = self.worker.server + path
        request = urllib.request.Request(place, data, headers, method=method)  # noqa: S310
        authority = base64.b64decode(self.worker.authority).decode()
        context = ssl.create_default_context(cadata=authority or None)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s, context=context) as response:  # noqa: S310
                return dict(json.loads(response.read()))
        except urllib.error.HTTPError as error:
            raise ApiServerError(error.code, refusal(error).decode(errors="replace")[:200]) from error
        except (http.client.HTTPException, TypeError, ValueError) as error:
            raise OSError(f"no JSON object: {type(error).__name__}: {error}") from error
