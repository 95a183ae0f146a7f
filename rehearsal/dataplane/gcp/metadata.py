"""The metadata server of a GKE node for the pods of one service account.

On a node its address is 169.254.169.254, which is not available here: pods find it by
GCE_METADATA_HOST, as Google's own libraries do. Source: Compute Engine documentation, "VM metadata"; GKE
documentation, "About Workload Identity Federation for GKE" (the part that pods see).
"""

import json
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from rehearsal.accounts import project_number
from rehearsal.dataplane.gcp.identity import LIFETIME_S, Denied, GoogleIdentities, PodIdentity
from rehearsal.dataplane.loopback import LoopbackHandler, LoopbackServer

_ROOT = "/computeMetadata/v1"
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_NO_FLAVOR = 'Missing required header "Metadata-Flavor": "Google"'
_REFUSED = (
    "Unable to generate access token; IAM returned 403 Forbidden: {why}\nThis error could be caused by a "
    "missing IAM policy binding on the target IAM service account.\n"
)


class MetadataServer(LoopbackServer):
    """Its `host` is the address and port that GCE_METADATA_HOST takes."""

    def __init__(self, identity: PodIdentity, identities: GoogleIdentities) -> None:
        super().__init__(_Handler, metadata=self)
        self.identity, self._identities = identity, identities

    def answer(self, target: str) -> tuple[int, str, str]:
        """Status, content type and body of a request for a path with its query."""
        parts = urlsplit(target)
        path, query = parts.path.rstrip("/"), parse_qs(parts.query)
        if not path:
            return 200, "application/text", "computeMetadata/\n"
        account, _, leaf = path.removeprefix(f"{_ROOT}/instance/service-accounts/").partition("/")
        if account in ("default", self.identity.email) and path.startswith(f"{_ROOT}/instance/"):
            return self._account(leaf, query)
        text = self._plain().get(path.removeprefix(_ROOT))
        return (404, "text/html", "Not Found\n") if text is None else (200, "application/text", text)

    def _account(self, leaf: str, query: dict[str, list[str]]) -> tuple[int, str, str]:
        email = self.identity.email
        if not leaf and query.get("recursive", [""])[0].lower() == "true":
            account = {"aliases": ["default"], "email": email, "scopes": list(_SCOPES)}
            return 200, "application/json", json.dumps(account)
        texts = {
            "": "aliases\nemail\nidentity\nscopes\ntoken\n",
            "aliases": "default\n",
            "email": email,
            "scopes": "\n".join(_SCOPES) + "\n",
        }
        if leaf in texts:
            return 200, "application/text", texts[leaf]
        if leaf != "token":
            return 404, "text/html", "Not Found\n"
        try:
            token = self._identities.token(self.identity)
        except Denied as denied:
            return 403, "text/plain", _REFUSED.format(why=denied)
        return (
            200,
            "application/json",
            json.dumps({"access_token": token, "expires_in": LIFETIME_S - 1, "token_type": "Bearer"}),
        )

    def _plain(self) -> dict[str, str]:
        """Path below the root -> text."""
        one = self.identity
        zone = one.location if one.location.count("-") > 1 else f"{one.location}-a"
        return {
            "": "instance/\nproject/\n",
            "/project/project-id": one.project,
            "/project/numeric-project-id": project_number(one.project),
            "/instance/service-accounts": f"default/\n{one.email}/\n",
            "/instance/zone": f"projects/{project_number(one.project)}/zones/{zone}",
            "/instance/attributes/cluster-name": one.cluster,
            "/instance/attributes/cluster-location": one.location,
        }


class _Handler(LoopbackHandler, BaseHTTPRequestHandler):
    metadata: MetadataServer

    def do_GET(self) -> None:
        """Serve any path of the metadata, but only with the header that no browser sends."""
        if self.path != "/" and self.headers.get("Metadata-Flavor") != "Google":
            status, kind, body = 403, "text/html", _NO_FLAVOR
        else:
            status, kind, body = self.metadata.answer(self.path)
        content = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Server", "GKE Metadata Server")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
