"""`trainstack collect --live kubernetes` on a real API server: found, refused and removed objects."""

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from policies.sources.live.kubernetes.object_kinds import OBJECT_KINDS
from policies.sources.live.records import LiveAccount, account
from policies.sources.live.snapshot import Snapshot
from policies.sources.live.tables import tables
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object, UnknownKindError
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.waiting import eventually
from tests.trainstack.cli.command import run
from trainstack.collect import object_lists
from trainstack.collect.cluster_rights import role
from trainstack.collect.kubernetes import collect

pytestmark = pytest.mark.usefixtures("_kubectl")
HIDDEN = "hunter2-of-the-cluster"
IMAGE = "docker.io/library/train:1"
URL = f"postgresql://app:{HIDDEN}@db/x"


@pytest.fixture(scope="session")
def _kubectl() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl here")


def pods(**container: Any) -> Object:
    own = {"name": "a", "image": IMAGE, **container}
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [own]}}


def objects(space: str) -> list[Object]:
    """One of each sort of thing, bad where that is to be seen."""
    about, core = {"namespace": space}, {"apiVersion": "v1"}
    env = [
        {"name": "DB_PASSWORD", "value": HIDDEN}, {"name": "URL", "value": URL},
        {"name": "API_TOKEN", "value": "arn:aws:secretsmanager:us-east-1:1:secret:x"},
    ]  # fmt: skip
    spec = {"selector": {"matchLabels": {"app": "a"}}, "replicas": 1}
    privileged = pods(securityContext={"privileged": True}, env=env, args=[f"--db-password={HIDDEN}"])
    applied = {"kubectl.kubernetes.io/last-applied-configuration": HIDDEN, "sync.example.com/token": HIDDEN}
    return [
        {**core, "kind": "Namespace", "metadata": {"name": space}},
        {**core, "kind": "Secret", "metadata": {**about, "name": "s"}, "stringData": {"a": HIDDEN}},
        {**core, "kind": "ConfigMap", "metadata": {**about, "name": "c"}, "data": {"A_KEY": HIDDEN}},
        {
            "apiVersion": "apps/v1", "kind": "Deployment", "spec": {**spec, "template": privileged},
            "metadata": {**about, "name": "d", "annotations": applied},
        },
        {**core, "kind": "Pod", "metadata": {**about, "name": "bare"}, "spec": pods()["spec"]},
        {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {**about, "name": "j"},
            "spec": {"template": {"spec": {**pods()["spec"], "restartPolicy": "Never"}}},
        },
    ]  # fmt: skip


@pytest.fixture(scope="module")
def space(api: KubernetesApi) -> Iterator[str]:
    """A namespace with all of them, and with what controllers make for them."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    for body in objects(name):
        api.create(body)
    eventually(lambda: len(api.list("v1", "Pod", name)) == 3, "the controllers make pods")
    yield name
    api.delete("v1", "Namespace", name)


@pytest.fixture
def login(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))


def of(found: LiveAccount, space: str) -> set[tuple[str, str]]:
    return {
        (one.kind, one.name)
        for one in found.resources
        if one.props["metadata"].get("namespace", one.name) == space
    }


MADE = {
    ("kubernetes:core/v1:Namespace", ""),
    ("kubernetes:core/v1:ConfigMap", "c"),
    ("kubernetes:core/v1:ConfigMap", "kube-root-ca.crt"),
    ("kubernetes:apps/v1:Deployment", "d"),
    ("kubernetes:core/v1:Pod", "bare"),
    ("kubernetes:batch/v1:Job", "j"),
}


def test_what_is_there_is_judged_once_and_has_no_secrets(space: str, login: None, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    code, said = run("collect", "--live", "kubernetes", "--out", str(file))
    assert code == 0 and "resources of cluster" in said and "not answered" not in said
    assert file.stat().st_mode & 0o777 == 0o600
    assert HIDDEN not in file.read_text()
    code, found = run("audit", "--snapshot", str(file), "--format", "json")
    assert code == 3
    outcomes = [one for one in json.loads(found)["outcomes"] if space in one.get("urn", "")]
    failed = {(one["rule"], one["name"]) for one in outcomes if one["result"] == "fail"}
    assert failed >= {
        ("MLS-K8S-01", "d"), ("MLS-K8S-03", space), ("MLS-K8S-06", "j"), ("MLS-REP-01", "bare"),
    }  # fmt: skip
    literals = [one for one in outcomes if one["rule"] == "MLS-TRK-04" and one["result"] == "fail"]
    assert sorted(one["message"].split()[0] for one in literals) == ["DB_PASSWORD", "URL"]
    assert {(one["kind"], one["name"].replace(space, "")) for one in outcomes} == MADE
    assert f" {space}/d (kubernetes:apps/v1:Deployment)" in run("audit", "--snapshot", str(file))[1]


def test_now_and_later_are_the_same(space: str, login: None) -> None:
    code, found = run("audit", "--live", "kubernetes", "--format", "json")
    assert code == 3
    assert any(one["result"] == "fail" and one.get("name") == "d" for one in json.loads(found)["outcomes"])


def test_responses_of_several_pages_are_complete(
    space: str, login: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = collect()
    monkeypatch.setattr(object_lists, "_PAGE", "2")
    assert names(collect()) == names(whole)


def names(found: Snapshot) -> dict[str, set[tuple[str, str]]]:
    """By question, of what stands still."""
    return {
        question: {
            (item.answer["metadata"].get("namespace", ""), item.answer["metadata"]["name"])
            for item in response.items
        }
        for question, response in found.answers.items()
    }


@pytest.fixture
def member(
    api: KubernetesApi, plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Logs in as an account that may do what a role allows."""
    name = f"audit-{uuid.uuid4().hex[:8]}"
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount"}
    made = [api.create({**account, "metadata": {"name": name, "namespace": "default"}})]

    def login(allowed: Mapping[str, Any]) -> None:
        group = "rbac.authorization.k8s.io"
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        made.append(api.create({**allowed, "metadata": {"name": name}}))
        made.append(
            api.create(
                {
                    "apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
                    "subjects": [subject],
                    "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
                }
            )
        )  # fmt: skip
        access = replace(plane.access, token=api.token("default", name))
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(access.kubeconfig()))
        monkeypatch.setenv("KUBECONFIG", str(file))

    yield login
    for body in reversed(made):
        api.delete(body["apiVersion"], body["kind"], name, body["metadata"].get("namespace", ""))


def test_the_role_of_the_docs_is_enough(api: KubernetesApi, space: str, member: Any) -> None:
    member(role())
    # Rights of a new binding count as soon as the server has seen it.
    found = eventually(partial(_collected, "list namespaces"), "the binding counts")
    assert found.coverage.refused == {}
    assert {(kind, name.replace(space, "")) for kind, name in of(found, space)} == MADE


def test_what_is_refused_is_undetermined_and_names_its_right(
    api: KubernetesApi, space: str, member: Any
) -> None:
    whole = role()
    rules = [rule for rule in whole["rules"] if rule.get("apiGroups") != ["apps"]]
    member({**whole, "rules": rules})
    found = eventually(partial(_collected, "list namespaces"), "the binding counts")
    assert set(found.coverage.refused) == {
        f"kubernetes:apps/v1:{kind}" for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
    }
    _, said = run("audit", "--live", "kubernetes", "--format", "json")
    rows = (one for one in json.loads(said)["outcomes"] if one["result"] == "undetermined")
    open_ = [one["message"] for one in rows if one["rule"] == "MLS-K8S-01" and "kind" not in one]
    assert any("deployments.apps" in message and "Forbidden" in message for message in open_)


def _collected(right: str) -> LiveAccount | None:
    found = collect()
    refused = {one.action for response in found.answers.values() for one in response.refusals}
    return None if right in refused else account(found)


def test_a_kind_that_is_not_served_is_one_of_which_there_are_none(api: KubernetesApi, login: None) -> None:
    with pytest.raises(UnknownKindError):
        api.resource("monitoring.coreos.com/v1", "PrometheusRule")
    response = collect().answers["monitoring.coreos.com.prometheusrules"]
    assert not response.items and not response.refusals


def test_names_of_kinds_are_those_of_the_server(api: KubernetesApi) -> None:
    served = 0
    for sort in OBJECT_KINDS:
        for version in sort.versions:
            try:
                there = api.resource(f"{sort.group}/{version}" if sort.group else version, sort.kind)
            except UnknownKindError:
                continue
            assert (there.plural, there.namespaced) == (sort.plural, sort.namespaced)
            served += 1
    assert served > 20


def test_a_table_has_every_field_of_the_server(api: KubernetesApi) -> None:
    """But status, and what is not kept."""
    kinds = {kind.kind: kind for kind in tables("kubernetes").kinds}
    held = 0
    for group, versions in {(sort.group, sort.versions) for sort in OBJECT_KINDS if sort.whole}:
        for version in versions:
            try:
                said = api.request(
                    "GET", f"/openapi/v3/apis/{group}/{version}" if group else "/openapi/v3/api/v1"
                )
            except ApiError:
                continue
            for schema in said["components"]["schemas"].values():
                for row in schema.get("x-kubernetes-group-version-kind", ()):
                    kind = kinds.get(f"kubernetes:{group or 'core'}/{version}:{row['kind']}")
                    if kind and row["group"] == group and row["version"] == version:
                        fields = schema["properties"].keys() - {"status", "binaryData", "immutable"}
                        assert kind.props.keys() == fields, kind.kind
                        held += 1
    assert held > 20


def config(plane: ControlPlane, **user: Any) -> Any:
    found = plane.access.kubeconfig()
    if user:
        found["users"][0]["user"] = user
    return found


def test_a_cluster_that_cannot_be_asked_is_an_error(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(file))
    ask = ("audit", "--live", "kubernetes")
    with pytest.raises(UserError, match="kubeconfig-without-cluster"):
        run(*ask)
    file.write_text(json.dumps(config(plane, token="stale")))
    with pytest.raises(UserError) as caught:
        run(*ask)
    assert caught.value.codes == (("cluster-login-refused", "credentials"),)
    with pytest.raises(UserError, match=r"--context: .*got 'other'.*kubeconfig-without-cluster"):
        run(*ask, "--context", "other")
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    file.write_text(json.dumps(config(plane, exec={**plugin, "command": str(tmp_path / "none")})))
    with pytest.raises(UserError, match=r"getting credentials: exec"):
        run(*ask)
    closed = config(plane)
    closed["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    file.write_text(json.dumps(closed))
    with pytest.raises(UserError, match=r"connection refused"):
        run(*ask)
    file.write_text("{")
    with pytest.raises(UserError, match="kubeconfig-without-cluster"):
        run(*ask)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="kubectl-not-installed"):
        run(*ask)
