"""Prometheus may read the metrics of controllers by the role of its chart; others may not."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.waiting import eventually

_GROUP = "rbac.authorization.k8s.io"
_RBAC = f"{_GROUP}/v1"


def read(plane: ControlPlane, controller: str, token: str) -> tuple[int, str]:
    """The status and the text of a controller's metrics, as Prometheus asks: with a token."""
    config = json.loads((plane.home / controller / "config.yaml").read_text())
    url = f"https://{config['metrics']['bindAddress']}/metrics"
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=20, context=trusting) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError as error:  # it does not listen yet
        return 0, str(error)


@pytest.fixture
def accounts(api: KubernetesApi, namespace: str) -> Iterator[dict[str, str]]:
    """Tokens of an account with the right of Prometheus in its chart, and of another."""
    bodies: list[Object] = [
        *({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
          for name in ("reads", "stranger")),
        {
            "apiVersion": _RBAC, "kind": "ClusterRole", "metadata": {"name": f"{namespace}-metrics"},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        },
        {
            "apiVersion": _RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": f"{namespace}-metrics"},
            "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": f"{namespace}-metrics"},
            "subjects": [{"kind": "ServiceAccount", "name": "reads", "namespace": namespace}],
        },
    ]  # fmt: skip
    for body in bodies:
        api.create(body)
    yield {name: api.token(namespace, name, seconds=600) for name in ("reads", "stranger")}
    for kind in ("ClusterRoleBinding", "ClusterRole"):
        api.delete(_RBAC, kind, f"{namespace}-metrics")


@pytest.mark.parametrize(
    ("controller", "metric", "strangers"),
    [
        ("kueue", "kueue_build_info", 403),
        ("jobset", "controller_runtime", 403),
        # Trainer 2.2.1 does not authenticate (pkg/config/config.go): only its network policy protects it.
        ("kubeflow-trainer", "controller_runtime", 200),
    ],
)
def test_metrics_need_a_right(
    plane: ControlPlane, accounts: dict[str, str], controller: str, metric: str, strangers: int
) -> None:
    eventually(
        lambda: read(plane, controller, accounts["reads"])[0] == 200,
        lambda: read(plane, controller, accounts["reads"]),
    )
    assert metric in read(plane, controller, accounts["reads"])[1]
    assert read(plane, controller, accounts["stranger"])[0] == strangers
