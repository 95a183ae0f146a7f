"""The API server admits every pod of ours where Pod Security is enforced as our namespaces enforce it."""

import uuid
from collections.abc import Iterator

import pytest

from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from tests.cluster.stack_objects import of_charts, of_program, pods

LEVEL = "pod-security.kubernetes.io/enforce"
# Not ours: EKS makes it, and drivers of nodes, which need their node, lie there.
SYSTEM = "kube-system"


def namespaces() -> dict[str, Object]:
    return {body["metadata"]["name"]: body for body in of_program() if body["kind"] == "Namespace"}


@pytest.fixture(scope="module")
def levels(api: KubernetesApi) -> Iterator[dict[str, str]]:
    """A namespace of each level that ours enforce: nothing else of ours is in the way there."""
    made = {}
    for level in sorted({body["metadata"]["labels"][LEVEL] for body in namespaces().values()}):
        made[level] = f"test-{level}-{uuid.uuid4().hex[:6]}"
        metadata = {"name": made[level], "labels": {LEVEL: level}}
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        account = {"name": "default", "namespace": made[level]}
        api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    yield made
    for name in made.values():
        api.delete("v1", "Namespace", name)


def admitted(api: KubernetesApi, pod: Object, namespace: str) -> None:
    spec = {**pod["spec"], "serviceAccountName": "default"}
    metadata = {**pod["metadata"], "namespace": namespace}
    api.create({**pod, "metadata": metadata, "spec": spec}, dry_run=True)


def test_every_pod_of_ours_is_admitted_in_its_namespace(api: KubernetesApi, levels: dict[str, str]) -> None:
    asked = set()
    objects = [*of_program(), *(body for bodies in of_charts().values() for body in bodies)]
    for owner, pod in pods(objects):
        namespace = owner["metadata"]["namespace"]
        if namespace != SYSTEM:
            admitted(api, pod, levels[namespaces()[namespace]["metadata"]["labels"][LEVEL]])
            asked.add(namespace)
    # Namespaces of teams are empty until a job starts.
    assert asked == {name for name in namespaces() if not name.startswith("team-")}


def test_a_privileged_pod_is_refused(api: KubernetesApi, levels: dict[str, str]) -> None:
    _, pod = next(pods(of_program()))
    container = {**pod["spec"]["containers"][0], "securityContext": {"privileged": True}}
    for namespace in (name for level, name in levels.items() if level != "privileged"):
        with pytest.raises(ApiError, match="violates PodSecurity"):
            admitted(api, {**pod, "spec": {**pod["spec"], "containers": [container]}}, namespace)
