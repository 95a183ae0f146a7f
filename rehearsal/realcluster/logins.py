"""The service that API servers of EKS and GKE ask who a bearer token of their cloud is (TokenReview)."""

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import quote, unquote

from rehearsal.core.state import State
from rehearsal.dataplane.loopback import LoopbackHandler, LoopbackServer
from rehearsal.kubernetes.clusters import of_scope
from rehearsal.kubernetes.controllers.pod_identities import PodIdentities


class CloudLogins:
    """Serves from the start until `stop`."""

    def __init__(self, state: State, identities: PodIdentities) -> None:
        self._state, self._identities = state, identities
        self._server = LoopbackServer(_Handler, logins=self)

    def url(self, scope: str) -> str:
        """The address for the API server of the cluster with this scope."""
        return f"http://{self._server.host}/{quote(scope, safe='')}"

    def user(self, scope: str, token: str) -> Mapping[str, object] | None:
        """The user of a token in a cluster; None where the cloud does not know it."""
        record = of_scope(self._state, scope)
        return self._identities.user(record, token) if record else None

    def stop(self) -> None:
        """Close the port."""
        self._server.stop()


class _Handler(LoopbackHandler, BaseHTTPRequestHandler):
    logins: CloudLogins

    def do_POST(self) -> None:
        """Answer a TokenReview."""
        review: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        user = self.logins.user(unquote(self.path[1:].partition("?")[0]), str(review["spec"].get("token")))
        status = {"authenticated": True, "user": user} if user else {"authenticated": False}
        about = {name: review[name] for name in ("apiVersion", "kind")}
        body = json.dumps({**about, "status": status}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
