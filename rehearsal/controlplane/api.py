"""Client of a Kubernetes API server that sends and returns plain objects, and raises errors as objects."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests

Object = dict[str, Any]

# One document with every kind of an API server (Kubernetes, "Aggregated Discovery", 1.30 and later).
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_APPLY, MERGE, STRATEGIC = (
    "application/apply-patch+yaml",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_TIMEOUT_S = 30.0


class ApiError(Exception):
    """Error response of the API server, with its `Status` object."""

    def __init__(self, status: Mapping[str, Any]) -> None:
        self.status = dict(status)
        super().__init__(str(status.get("message") or status))

    @property
    def code(self) -> int:
        """The HTTP status."""
        return int(self.status.get("code") or 0)

    @property
    def reason(self) -> str:
        """Machine-readable reason: NotFound, AlreadyExists, Invalid, Forbidden, Conflict ..."""
        return str(self.status.get("reason") or "")

    @property
    def fields(self) -> tuple[str, ...]:
        """Paths of invalid fields, where the server reports them."""
        causes = (self.status.get("details") or {}).get("causes") or ()
        return tuple(str(cause["field"]) for cause in causes if cause.get("field"))


class UnknownKindError(Exception):
    """The API server serves no such kind; a CustomResourceDefinition may be missing."""


@dataclass(frozen=True)
class ApiResource:
    """Path of a kind."""

    path: str
    plural: str
    namespaced: bool

    def url(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """Path of one object, or of all objects of a namespace."""
        middle = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        parts = [self.path + middle, self.plural, name, subresource]
        return "/".join(part for part in parts if part)


@dataclass(frozen=True)
class Access:
    """Address of an API server, and credentials: a client certificate or a bearer token."""

    server: str
    authority: Path
    certificate: Path | None = None
    key: Path | None = None
    token: str = ""

    def kubeconfig(self) -> Object:
        """The access as a kubeconfig."""
        user: Object = {"token": self.token} if self.token else {
            "client-certificate": str(self.certificate), "client-key": str(self.key)
        }  # fmt: skip
        cluster = {"server": self.server, "certificate-authority": str(self.authority)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "trainstack", "cluster": cluster}],
            "users": [{"name": "trainstack", "user": user}],
            "contexts": [{"name": "trainstack", "context": {"cluster": "trainstack", "user": "trainstack"}}],
            "current-context": "trainstack",
        }


class KubernetesApi:
    """One connection to one API server; it reads no kubeconfig and no variable of the environment.

    Methods raise ApiError when the server refuses, UnknownKindError for a kind that it does not serve.
    """

    def __init__(self, access: Access) -> None:
        self.access = access
        self._session = requests.Session()
        self._session.trust_env = False  # ignore proxies and .netrc of the user
        self._session.verify = str(access.authority)
        if access.token:
            self._session.headers["Authorization"] = f"Bearer {access.token}"
        else:
            self._session.cert = (str(access.certificate), str(access.key))
        self._kinds: dict[tuple[str, str], ApiResource] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.close()

    def request(
        self, method: str, path: str, body: Object | None = None, *, content: str = "application/json",
        query: Mapping[str, Any] | None = None, accept: str = "application/json",
    ) -> Object:  # fmt: skip
        """Send one request; returns the response."""
        answer = self._session.request(
            method,
            self.access.server + path,
            data=None if body is None else json.dumps(body),
            params=dict(query or {}),
            headers={"Content-Type": content, "Accept": accept},
            timeout=_TIMEOUT_S,
        )
        try:
            parsed = answer.json()
        except ValueError:
            parsed = {"message": answer.text}
        if answer.status_code >= 400:
            raise ApiError({"code": answer.status_code, **parsed})
        return dict(parsed)

    def text(self, path: str) -> str:
        """Response text of a GET that is not an object, such as /readyz."""
        answer = self._session.get(self.access.server + path, timeout=_TIMEOUT_S)
        if answer.status_code >= 400:
            raise ApiError({"code": answer.status_code, "message": answer.text})
        return answer.text

    # -- objects ---------------------------------------------------------------------------------------

    def create(self, body: Object, *, dry_run: bool = False, manager: str = "trainstack") -> Object:
        """POST an object."""
        query = {"fieldManager": manager, **_dry(dry_run)}
        return self.request("POST", self._url(body, named=False), body, query=query)

    def apply(
        self, body: Object, *, dry_run: bool = False, manager: str = "trainstack", force: bool = True
    ) -> Object:
        """Server-side apply an object."""
        query = {"fieldManager": manager, "force": str(force).lower(), **_dry(dry_run)}
        return self.request("PATCH", self._url(body), body, content=_APPLY, query=query)

    def replace(self, body: Object, *, subresource: str = "", dry_run: bool = False) -> Object:
        """PUT an object, or one of its subresources."""
        return self.request("PUT", self._url(body, subresource=subresource), body, query=_dry(dry_run))

    def patch(
        self, api_version: str, kind: str, name: str, patch: Object, namespace: str = "", *,
        subresource: str = "", content: str = MERGE,
    ) -> Object:  # fmt: skip
        """Merge-patch an object, or one of its subresources."""
        url = self.resource(api_version, kind).url(namespace, name, subresource)
        return self.request("PATCH", url, patch, content=content)

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object:
        """One object."""
        return self.request("GET", self.resource(api_version, kind).url(namespace, name))

    def find(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """One object, or None."""
        try:
            return self.get(api_version, kind, name, namespace)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def list(
        self, api_version: str, kind: str, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> list[Object]:
        """Objects of a kind, in one namespace or in all, by label and field selectors."""
        query = {"labelSelector": labels, "fieldSelector": fields}
        content = self.request("GET", self.resource(api_version, kind).url(namespace), query=query)
        # Items of a list have no kind.
        return [{"apiVersion": api_version, "kind": kind, **item} for item in content["items"]]

    def delete(
        self, api_version: str, kind: str, name: str, namespace: str = "", *, propagation: str = "Foreground"
    ) -> None:
        """Delete an object; finalizers may delay it. No error when it is already gone."""
        try:
            url = self.resource(api_version, kind).url(namespace, name)
            self.request("DELETE", url, {"propagationPolicy": propagation})
        except ApiError as error:
            if error.code != 404:
                raise

    def watch(
        self, api_version: str, kind: str, namespace: str = "", *, since: str = "", timeout_s: float = 300.0
    ) -> Iterator[tuple[str, Object]]:
        """(ADDED, MODIFIED or DELETED, object) until the timeout; existing objects come first."""
        url = self.access.server + self.resource(api_version, kind).url(namespace)
        query = {"watch": "true", "resourceVersion": since, "timeoutSeconds": str(int(timeout_s))}
        with self._session.get(url, params=query, stream=True, timeout=timeout_s + _TIMEOUT_S) as answer:
            if answer.status_code >= 400:
                raise ApiError({"code": answer.status_code, **answer.json()})
            for line in answer.iter_lines(chunk_size=None):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(event["object"])
                if event["type"] != "BOOKMARK":
                    yield event["type"], event["object"]

    def token(self, namespace: str, account: str, *, seconds: int = 3600, pod: Object | None = None) -> str:
        """A new token of a service account, bound to a pod where its metadata is given."""
        path = self.resource("v1", "ServiceAccount").url(namespace, account, "token")
        spec: Object = {"expirationSeconds": seconds}
        if pod is not None:
            bound = {"apiVersion": "v1", "kind": "Pod", "name": pod["name"], "uid": pod["uid"]}
            spec["boundObjectRef"] = bound
        order = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.request("POST", path, order)["status"]["token"])

    # -- kinds -----------------------------------------------------------------------------------------

    def resource(self, api_version: str, kind: str) -> ApiResource:
        """The path of a kind; discovery is repeated for an unknown kind."""
        key = (api_version, kind)
        if key not in self._kinds:
            self._kinds = {**self._discover("/api"), **self._discover("/apis")}
        if key not in self._kinds:
            raise UnknownKindError(f'no matches for kind "{kind}" in version "{api_version}"')
        return self._kinds[key]

    def _discover(self, path: str) -> dict[tuple[str, str], ApiResource]:
        found = {}
        for group in self.request("GET", path, accept=_DISCOVERY)["items"]:
            name = group["metadata"].get("name") or ""
            for version in group.get("versions") or ():
                api_version = f"{name}/{version['version']}" if name else version["version"]
                for row in version.get("resources") or ():
                    kind = (row.get("responseKind") or {}).get("kind")
                    if kind:
                        base = f"{path}/{api_version}"
                        resource = ApiResource(base, row["resource"], row["scope"] == "Namespaced")
                        found[(api_version, kind)] = resource
        return found

    def _url(self, body: Object, *, named: bool = True, subresource: str = "") -> str:
        metadata = body.get("metadata") or {}
        resource = self.resource(body["apiVersion"], body["kind"])
        namespace = str(metadata.get("namespace") or "default")
        return resource.url(namespace, str(metadata["name"]) if named else "", subresource)


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}
