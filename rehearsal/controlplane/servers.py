"""Start etcd, the API server, the controllers and the scheduler, and wait until they respond."""

import json
from pathlib import Path

import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from rehearsal.controlplane.api import Access, ApiError, KubernetesApi
from rehearsal.controlplane.certificates import Authority, write_key
from rehearsal.controlplane.processes import StartContext, free_ports

AUDIT_LOG = "audit.log"
ACCESS = "access.json"
SERVICE_RANGE = "10.96.0.0/16"
# In addition to Kubernetes' defaults, such as Pod Security. Managed clusters have both.
# source: docs.aws.amazon.com/eks/latest/userguide/platform-versions.html (enabled admission controllers)
_ADMISSION = "NodeRestriction,ExtendedResourceToleration"
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "None", "verbs": ["get", "list", "watch"]}, {"level": "Metadata"}],
}
_PATIENCE_S = 60.0


def start_servers(
    site: StartContext, *, node_grace_s: int, controller_requests_per_s: int, logins: str = ""
) -> Access:
    """Start all four; returns administrator access. Raises StartError."""
    etcd_port, peer_port, fresh = free_ports(3)
    port = _kept_port(site.home) or fresh
    authority, binaries, processes = site.authority, site.binaries, site.processes
    _start_etcd(site, etcd_port, peer_port)
    server = f"https://127.0.0.1:{port}"
    keys = _start_api_server(site, etcd_port, port, logins)
    admin = authority.sign("admin", ("system:masters",))
    access = Access(server, authority.file, admin.certificate, admin.key)
    with KubernetesApi(access) as api:
        processes.wait("kube-apiserver", lambda: _is_ready(api), _PATIENCE_S)
    manager = _kubeconfig(site, server, "system:kube-controller-manager")
    processes.start(
        "kube-controller-manager",
        [
            binaries["kube-controller-manager"],
            f"--kubeconfig={manager}",
            f"--service-account-private-key-file={keys}",
            f"--root-ca-file={authority.file}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
            f"--node-monitor-grace-period={node_grace_s}s",
            f"--kube-api-qps={controller_requests_per_s}",
            # The ratio of Kubernetes' defaults, 30 to 20.
            f"--kube-api-burst={controller_requests_per_s * 3 // 2}",
        ],
    )
    scheduler = _kubeconfig(site, server, "system:kube-scheduler")
    processes.start(
        "kube-scheduler",
        [binaries["kube-scheduler"], f"--kubeconfig={scheduler}", "--leader-elect=false", "--secure-port=0"],
    )
    return access


def _kept_port(home: Path) -> int:
    """Port of the previous control plane, which kubeconfigs contain; 0 without one."""
    kept = home / ACCESS
    return int(json.loads(kept.read_text())["server"].rpartition(":")[2]) if kept.exists() else 0


def _is_ready(api: KubernetesApi) -> bool:
    try:
        return api.text("/readyz") == "ok"
    except (ApiError, requests.RequestException):
        return False


def _kubeconfig(site: StartContext, server: str, user: str) -> Path:
    pair = site.authority.sign(user)
    access = Access(server, site.authority.file, pair.certificate, pair.key)
    return write_kubeconfig(site.home / f"{user.replace(':', '-')}.kubeconfig", access)


def write_kubeconfig(path: Path, access: Access) -> Path:
    """Write a kubeconfig with access for its owner only."""
    path.touch(mode=0o600)
    path.write_text(json.dumps(access.kubeconfig(), indent=2), encoding="utf-8")  # JSON is YAML
    return path


def _start_etcd(site: StartContext, port: int, peer_port: int) -> None:
    pair = site.authority.sign("etcd")
    files = [f"-file={pair.certificate}", f"-file={pair.key}"]
    tls = [
        f"--{prefix}{option}"
        for prefix in ("", "peer-")
        for option in (
            f"cert{files[0]}",
            f"key{files[1]}",
            f"trusted-ca-file={site.authority.file}",
            "client-cert-auth",
        )
    ]
    address, peer = f"https://127.0.0.1:{port}", f"https://127.0.0.1:{peer_port}"
    site.processes.start(
        "etcd",
        [
            site.binaries["etcd"],
            f"--data-dir={site.home / 'etcd'}",
            f"--listen-client-urls={address}",
            f"--advertise-client-urls={address}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # Its data is not kept.
            "--unsafe-no-fsync",
            *tls,
        ],
    )


def _start_api_server(site: StartContext, etcd_port: int, port: int, logins: str) -> Path:
    """Start the API server; returns the file of the key that signs service account tokens."""
    authority, home = site.authority, site.home
    serving = authority.sign("kube-apiserver", hosts=("kubernetes", "kubernetes.default.svc"))
    client = authority.sign("kube-apiserver-etcd-client")
    key, public = home / "service-accounts.key", home / "service-accounts.pub"
    if not public.exists():
        signing = ec.generate_private_key(ec.SECP256R1())
        write_key(signing, key)
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        public.write_bytes(signing.public_key().public_bytes(serialization.Encoding.PEM, form))
    policy = home / "audit-policy.json"
    policy.write_text(json.dumps(_AUDIT_POLICY), encoding="utf-8")
    site.processes.start(
        "kube-apiserver",
        [
            site.binaries["kube-apiserver"],
            f"--etcd-servers=https://127.0.0.1:{etcd_port}",
            f"--etcd-cafile={authority.file}",
            f"--etcd-certfile={client.certificate}",
            f"--etcd-keyfile={client.key}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # loopback addresses cannot be endpoints
            f"--secure-port={port}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={authority.file}",
            "--anonymous-auth=false",
            "--authorization-mode=Node,RBAC",
            f"--enable-admission-plugins={_ADMISSION}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={key}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            f"--audit-log-path={home / AUDIT_LOG}",
            f"--audit-policy-file={policy}",
            "--allow-privileged=true",
            *_front_proxy(site),
            *_logins(site, logins),
        ],
    )
    return key


def _logins(site: StartContext, url: str) -> list[str]:
    """Flags for the service that knows the bearer tokens of clouds, as EKS and GKE have one."""
    if not url:
        return []
    config = site.home / "logins.json"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "logins", "cluster": {"server": url}}],
                "users": [{"name": "api-server", "user": {}}],
                "contexts": [{"name": "logins", "context": {"cluster": "logins", "user": "api-server"}}],
                "current-context": "logins",
            }
        ),
        encoding="utf-8",
    )
    return [
        f"--authentication-token-webhook-config-file={config}",
        "--authentication-token-webhook-version=v1",
    ]


def _front_proxy(site: StartContext) -> list[str]:
    """Flags for the certificate and headers with which the API server proxies to extension servers.

    Source: kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer.
    """
    authority, user = Authority(site.home / "front-proxy", "front-proxy-ca"), "front-proxy-client"
    pair = authority.sign(user)
    return [
        f"--requestheader-client-ca-file={authority.file}",
        f"--requestheader-allowed-names={user}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pair.certificate}",
        f"--proxy-client-key-file={pair.key}",
    ]
