"""Pods of an emulated cluster have the rights of their account at the API server, and no more."""

import json

import pytest

from rehearsal.core.model import InitFailedError
from rehearsal.kubernetes.clusters import resolve
from rehearsal.workloads.translate import Pod
from tests.rehearsal.kubernetes.harness import (
    ACCOUNT_KIND,
    JOB,
    NAMESPACE,
    RELEASE,
    Rehearsed,
    job,
    script_pod,
)

ROLE, BINDING, WIDE_ROLE, WIDE_BINDING = (
    f"kubernetes:rbac.authorization.k8s.io/v1:{kind}"
    for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
)
KUEUE = {
    "chart": "oci://registry.k8s.io/kueue/charts/kueue", "version": "0.19.2", "name": "kueue",
    "namespace": "kueue-system", "createNamespace": True,
}  # fmt: skip
ASK = """
import json, os, pathlib, ssl, sys, urllib.error, urllib.request
folder = pathlib.Path(sys.argv[1])
context = ssl.create_default_context(cafile=folder / "ca.crt")
server = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
said = {}
for path in sys.argv[2:]:
    headers = {"Authorization": "Bearer " + (folder / "token").read_text()}
    target, _, new = path.partition(" ")
    try:
        request = urllib.request.Request(server + target, new.encode() or None, headers)
        with urllib.request.urlopen(request, context=context) as answer:
            body = json.load(answer)
            said[path] = body.get("kind") or body["metadata"]["name"]
    except urllib.error.HTTPError as error:
        said[path] = error.code
print(json.dumps(said), flush=True)
sys.exit(json.dumps(said))
"""
FLAVORS = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors"
NEW, BAD, TAKEN = (
    json.dumps({"metadata": {"name": name}, "kind": "ResourceFlavor", "spec": spec})
    for name, spec in (("new", {}), ("bad", {"nodeLabels": 5}), ("taken", {}))
)
PATHS = {
    f"{FLAVORS}?dryRun=All {NEW}": "ResourceFlavor",
    f"{FLAVORS}?dryRun=All {BAD}": 422,
    f"{FLAVORS}?dryRun=All {TAKEN}": 409,
    f"{FLAVORS} {NEW}": 501,
    f"/apis/kueue.x-k8s.io/v1beta2/none?dryRun=All {NEW}": 404,
    f"/apis/kueue.x-k8s.io/v1beta2/cohorts?dryRun=All {NEW}": 403,
    "/apis/batch/v1/namespaces/lab/jobs/other": "Job",
    "/apis/batch/v1/namespaces/lab/jobs/none": 404,
    "/apis/batch/v1/namespaces/lab/jobs": 403,
    "/api/v1/namespaces/lab/pods?labelSelector=batch.kubernetes.io/job-name%3Dother": "PodList",
    "/api/v1/namespaces/lab/pods?watch=true": 501,
    "/apis/batch/v1/namespaces/lab/jobs?watch=true": 403,
    "/api/v1/namespaces/else/pods": 403,
    "/api/v1/namespaces/lab/secrets/x": 403,
}


@pytest.fixture
def reader(rehearsed: Rehearsed) -> Rehearsed:
    """An account that may get Jobs and list pods of the namespace `lab`, and create ResourceFlavors."""
    rehearsed.namespace()
    rehearsed.create(RELEASE, KUEUE, "kueue")
    flavor = {"metadata": {"name": "taken"}, "spec": {}}
    rehearsed.create("kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor", flavor, "flavor")
    place = {"name": "reader", "namespace": "lab"}
    rehearsed.create(ACCOUNT_KIND, {"metadata": place}, "reader")
    rules = [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
    ]
    rehearsed.create(ROLE, {"metadata": place, "rules": rules}, "role")
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "lab"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    binding = {"metadata": place, "roleRef": reference, "subjects": [subject]}
    rehearsed.create(BINDING, binding, "binding")
    resources = ["resourceflavors", "none"]
    create = [{"apiGroups": ["kueue.x-k8s.io"], "resources": resources, "verbs": ["create"]}]
    rehearsed.create(WIDE_ROLE, {"metadata": {"name": "asker"}, "rules": create}, "wide-role")
    wide = {"metadata": {"name": "asker"}, "roleRef": {**reference, "kind": "ClusterRole", "name": "asker"}}
    rehearsed.create(WIDE_BINDING, {**wide, "subjects": [subject]}, "wide-binding")
    rehearsed.config_map("job", {"main.py": ASK})
    rehearsed.config_map("quick", {"main.py": "pass"})
    rehearsed.create(JOB, job("other", script_pod("quick")), "other")
    return rehearsed


def asking() -> dict[str, object]:
    sources = [
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    pod = script_pod(
        serviceAccountName="reader",
        container={
            "args": ["/account", *PATHS],
            "volumeMounts": [
                {"name": "code", "mountPath": "/code"},
                {"name": "account", "mountPath": "/account"},
            ],
        },
    )
    pod["volumes"].append({"name": "account", "projected": {"sources": sources}})
    return pod


def test_a_pod_reads_and_asks_what_its_roles_allow(reader: Rehearsed) -> None:
    with pytest.raises(InitFailedError) as failed:
        reader.create(JOB, job("asks", asking()), "asks")
    said = next(line for line in "\n".join(failed.value.reasons).splitlines() if "{" in line)
    assert json.loads(said[said.index("{") :]) == PATHS
    assert not list(reader.state.find(name="new"))


def test_an_unknown_token_reads_nothing(reader: Rehearsed) -> None:
    assert reader.cloud._pod_api.answer("guess", next(iter(PATHS)))[0] == 401


def test_a_pod_keeps_the_secret_that_its_role_names_until_the_namespace_goes(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    place = {"name": "writer", "namespace": "lab"}
    named = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["login"]}
    rules = [
        {**named, "verbs": ["get", "update"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    ]
    rehearsed.create(ROLE, {"metadata": place, "rules": rules}, "role")
    subject = {"kind": "ServiceAccount", "name": "writer", "namespace": "lab"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"}
    rehearsed.create(BINDING, {"metadata": place, "roleRef": reference, "subjects": [subject]}, "binding")
    api, cluster = rehearsed.cloud._pod_api, resolve(rehearsed.state, rehearsed.config)
    assert cluster
    pod = Pod("lab", "p", "u", "127.0.0.1", {"serviceAccountName": "writer"})
    token = api.token(cluster, pod).decode()

    def secret(text: str, name: str = "login") -> dict[str, object]:
        metadata = {"name": name, "namespace": "lab"}
        return {"kind": "Secret", "metadata": metadata, "data": {"word": text}}

    path = "/api/v1/namespaces/lab/secrets"
    assert api.answer(token, f"{path}/login")[0] == 404
    assert api.answer(token, f"{path}/login", secret("b2xk"), "PUT")[0] == 404
    assert api.answer(token, path, secret("b2xk"), "POST")[0] == 201
    assert api.answer(token, path, secret("bmV3"), "POST")[0] == 409
    assert api.answer(token, f"{path}/login")[1]["data"] == {"word": "b2xk"}
    assert api.answer(token, f"{path}/login", secret("bmV3"), "PUT")[0] == 200
    assert api.answer(token, f"{path}/login")[1]["data"] == {"word": "bmV3"}
    assert api.answer(token, path, secret("b2xk", "other"), "POST")[0] == 201
    for target, new, method in (
        (f"{path}/other", None, "GET"),
        (f"{path}/other", secret("bmV3", "other"), "PUT"),
        (path, None, "GET"),
        ("/api/v1/namespaces/else/secrets", secret("b2xk"), "POST"),
    ):
        assert api.answer(token, target, new, method)[0] == 403, target
    rehearsed.cloud.delete(rehearsed.call(NAMESPACE, "lab"), "lab", {})
    assert not list(rehearsed.state.find(name="login"))
