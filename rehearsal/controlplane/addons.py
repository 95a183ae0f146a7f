"""Kueue, JobSet and Trainer: charts rendered by Helm and applied, controllers run as processes.

A chart's Deployment does not run: its program is started with the chart's own configuration file, under its
own service account (so that its RBAC applies), and its webhooks are reached by URL on loopback.
"""

import base64
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

from rehearsal.controlplane.api import Access, KubernetesApi, Object, UnknownKindError
from rehearsal.controlplane.binaries import files_of
from rehearsal.controlplane.certificates import Authority, Pair
from rehearsal.controlplane.helm import Release, render
from rehearsal.controlplane.processes import StartContext, StartError, free_ports
from rehearsal.controlplane.servers import write_kubeconfig

_PATIENCE_S = 90.0
_POLL_S = 0.1
_TOKEN_S = 24 * 3600
# Objects of a chart that must exist before the others.
_FIRST = ("Namespace", "CustomResourceDefinition", "ServiceAccount")
# Runs as a process here, or needs a pod network.
_LEFT_OUT = ("Deployment", "PodDisruptionBudget", "Secret")
_LAST = {
    "APIService": -1, "ValidatingWebhookConfiguration": -1, "MutatingWebhookConfiguration": -1,
    "CustomResourceDefinition": 1,
}  # fmt: skip
_OBJECTS = "objects.json"


@dataclass(frozen=True)
class Addon:
    """One controller: its name (also of binary and chart) and namespace."""

    name: str
    namespace: str
    renews_certificate: bool = False
    """True when it rotates its webhook's certificate in any folder, as in a cluster."""
    serves: bool = False
    """True when it serves an API of its own behind the API server (`visibilityServer`)."""
    certificates: str = "internalCertManagement"
    """Key of its configuration file for that setting."""


# In start order: Trainer needs JobSet's kind.
ADDONS = {
    "jobset": Addon("jobset", "jobset-system"),
    "kubeflow-trainer": Addon("kubeflow-trainer", "kubeflow-system", certificates="certManagement"),
    "kueue": Addon(
        "kueue",
        "kueue-system",
        renews_certificate=True,
        serves=True,
    ),
}


@dataclass(frozen=True)
class Order:
    """A chart to install, and its controller."""

    values: Mapping[str, Any]
    chart: Path | None = None
    """Its folder; None: of the pinned version."""
    program: Path | None = None
    """The controller; None: of the pinned version."""
    skip_crds: bool = False
    """True: without the definitions of the folder `crds`."""

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> "Order":
        """An order from JSON."""
        paths = {key: Path(row[key]) for key in ("chart", "program") if row.get(key)}
        return cls(row["values"], skip_crds=bool(row.get("skip_crds")), **paths)


def start_addon(addon: Addon, order: Order, access: Access, site: StartContext) -> None:
    """Install a chart and run its controller in place of an earlier one; ready when its webhooks answer.

    As with Helm, definitions of the folder `crds` are created where they are absent, and never changed.
    Raises StartError.
    """
    chart = order.chart or files_of(addon.name)[0]
    objects = render(site.binaries["helm"], chart, Release(addon.name, addon.namespace), order.values)
    own = [] if order.skip_crds else _own_definitions(chart)
    site.processes.stop(addon.name)
    folder = site.home / addon.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / _OBJECTS).write_text(json.dumps(objects), encoding="utf-8")
    webhook_port, health_port, metrics_port, serving_port = free_ports(4)
    with KubernetesApi(access) as api:
        configured = next(_configurations(objects))
        authority = Authority(folder / "certificates", f"{addon.name}-ca")
        service = (configured.get(addon.certificates) or {}).get("webhookServiceName") or addon.name
        pair = authority.sign("webhook", hosts=(f"{service}.{addon.namespace}.svc",))
        _create_missing(api, own)
        _install(api, addon, _served_here(objects, serving_port), authority, webhook_port)
        serving = folder / "k8s-webhook-server" / "serving-certs"
        config = {**_configuration(configured, webhook_port, health_port, metrics_port)}
        if addon.renews_certificate:
            # Valid certificates are kept.
            api.apply(_secret(addon, configured, authority, pair))
            config["webhook"]["certDir"] = str(serving)
        else:
            config[addon.certificates] = {"enable": False}
        if addon.serves:
            config["visibilityServer"] = {"bindAddress": "127.0.0.1", "bindPort": serving_port}
        (folder / "config.yaml").write_text(json.dumps(config, indent=2), encoding="utf-8")
        _serve_with(serving, authority, pair)
        account = next(body for body in objects if body["kind"] == "ServiceAccount")
        metadata = account["metadata"]
        token = api.token(metadata["namespace"], metadata["name"], seconds=_TOKEN_S)
    credentials = write_kubeconfig(
        folder / "kubeconfig", Access(access.server, access.authority, token=token)
    )
    site.processes.start(
        addon.name,
        # The API server of an addon authorizes with the file and reads no variable.
        [
            order.program or site.binaries[addon.name],
            f"--config={folder / 'config.yaml'}",
            *([f"--kubeconfig={credentials}"] if addon.serves else ()),
        ],
        # Its webhook server reads its certificate below TMPDIR.
        {"KUBECONFIG": str(credentials), "POD_NAMESPACE": addon.namespace, "TMPDIR": str(folder)},
    )

    try:
        site.processes.wait(addon.name, lambda: _healthy(health_port), _PATIENCE_S)
    except StartError:
        # One that has ended would end the control plane.
        site.processes.stop(addon.name)
        raise


def _healthy(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/readyz", timeout=2).status_code == 200
    except requests.RequestException:
        return False


def remove_addon(addon: Addon, access: Access, site: StartContext) -> None:
    """End a controller and delete the objects of its chart; no error when it is not installed."""
    site.processes.stop(addon.name)
    folder = site.home / addon.name
    if not folder.exists():
        return
    objects = json.loads((folder / _OBJECTS).read_text(encoding="utf-8"))
    with KubernetesApi(access) as api:
        # Webhooks first: their server has ended. Objects that others depend on last.
        for body in sorted(_wanted(objects), key=lambda body: _LAST.get(body["kind"], 0)):
            metadata = body["metadata"]
            if body["kind"] != "Namespace":
                namespace = str(metadata.get("namespace") or "")
                api.delete(body["apiVersion"], body["kind"], metadata["name"], namespace)
    shutil.rmtree(folder)


def _own_definitions(chart: Path) -> list[Object]:
    """The definitions in a chart's folder `crds`, which Helm creates once and leaves to the user."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((chart / "crds").glob("*.yaml"))]
    return [body for text in texts for body in yaml.load_all(text, Loader=yaml.CSafeLoader) if body]


def _create_missing(api: KubernetesApi, definitions: Sequence[Object]) -> None:
    for body in definitions:
        if api.find(body["apiVersion"], body["kind"], body["metadata"]["name"]) is None:
            api.create(body, manager="helm")
        _await_kind(api, body["spec"])


def _install(
    api: KubernetesApi, addon: Addon, objects: Sequence[Object], authority: Authority, webhook_port: int
) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": addon.namespace}}
    api.apply(namespace)
    for body in sorted(_wanted(objects), key=lambda body: body["kind"] not in _FIRST):
        if body["kind"] in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
            for webhook in body["webhooks"]:
                webhook["clientConfig"] = _reached_by_url(webhook["clientConfig"], authority, webhook_port)
        if body["kind"] == "CustomResourceDefinition":
            conversion = (body["spec"].get("conversion") or {}).get("webhook")
            if conversion:
                client = conversion["clientConfig"]
                conversion["clientConfig"] = _reached_by_url(client, authority, webhook_port)
        api.apply(body)
    for body in objects:
        if body["kind"] == "CustomResourceDefinition":
            _await_kind(api, body["spec"])


def _served_here(objects: Sequence[Object], port: int) -> list[Object]:
    """The objects of a chart whose API is on loopback: its Service is only a name.

    Source: kubernetes/apiserver v0.36.2 pkg/util/proxy/proxy.go, `ResolveCluster`.
    """
    found = {body["spec"]["service"]["name"] for body in objects if body["kind"] == "APIService"}
    named = {"type": "ExternalName", "externalName": "localhost"}
    changed = []
    for body in objects:
        if body["kind"] == "APIService":
            service = {**body["spec"]["service"], "port": port}
            changed.append({**body, "spec": {**body["spec"], "service": service}})
        elif body["kind"] == "Service" and body["metadata"]["name"] in found:
            changed.append({**body, "spec": named})
        else:
            changed.append(body)
    return changed


def _await_kind(api: KubernetesApi, spec: Object) -> None:
    """Wait until a new kind is served, as Helm does (pkg/action/install.go, `installCRDs`, v3)."""
    deadline = time.monotonic() + _PATIENCE_S
    version = next(row["name"] for row in spec["versions"] if row["served"])
    while True:
        try:
            api.resource(f"{spec['group']}/{version}", spec["names"]["kind"])
            return
        except UnknownKindError as error:
            if time.monotonic() > deadline:
                raise StartError(str(error)) from error
        time.sleep(_POLL_S)


def _wanted(objects: Sequence[Object]) -> Iterator[Object]:
    return (body for body in objects if body["kind"] not in _LEFT_OUT and not _for_tests(body))


def _for_tests(body: Object) -> bool:
    return "helm.sh/hook" in (body["metadata"].get("annotations") or {})


def _reached_by_url(client: Mapping[str, Any], authority: Authority, port: int) -> Object:
    path = client["service"].get("path") or "/convert"
    bundle = base64.b64encode(authority.pem).decode()
    return {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}


def _configuration(configured: Object, webhook_port: int, health_port: int, metrics_port: int) -> Object:
    """A chart's configuration file, adapted for a process outside of a pod."""
    return {
        **configured,
        "webhook": {**(configured.get("webhook") or {}), "port": webhook_port, "host": "127.0.0.1"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "metrics": {**(configured.get("metrics") or {}), "bindAddress": f"127.0.0.1:{metrics_port}"},
        "leaderElection": {**(configured.get("leaderElection") or {}), "leaderElect": False},
    }


def _configurations(objects: Sequence[Object]) -> Iterator[Object]:
    for body in objects:
        if body["kind"] == "ConfigMap":
            for text in (body.get("data") or {}).values():
                configured = yaml.safe_load(text)
                if isinstance(configured, dict) and configured.get("kind") == "Configuration":
                    yield configured


def _serve_with(target: Path, authority: Authority, pair: Pair) -> None:
    """Write a certificate where the kubelet would mount it."""
    target.mkdir(parents=True)
    (target / "tls.key").touch(mode=0o600)
    for name, content in _files(authority, pair).items():
        if name != "ca.key":
            (target / name).write_bytes(content)


def _secret(addon: Addon, configured: Object, authority: Authority, pair: Pair) -> Object:
    name = configured[addon.certificates]["webhookSecretName"]
    encoded = {key: base64.b64encode(value).decode() for key, value in _files(authority, pair).items()}
    metadata = {"name": name, "namespace": addon.namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


def _files(authority: Authority, pair: Pair) -> dict[str, bytes]:
    return {
        "ca.crt": authority.pem,
        "ca.key": authority.key_pem,
        "tls.crt": pair.certificate.read_bytes(),
        "tls.key": pair.key.read_bytes(),
    }
