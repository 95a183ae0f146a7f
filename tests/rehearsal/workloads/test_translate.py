"""Translation of containers into processes, without starting any."""

import base64
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.workloads.rewriting import Host, LocalNames, rewrite
from rehearsal.workloads.translate import (
    ContainerConfigError,
    Pod,
    Surroundings,
    contents,
    environment,
    expand,
    is_ours,
    plan,
)

WORLD = LocalNames(
    namespace="lab",
    paths={
        "/opt/app": Path("/home/pods/app"),
        "/opt/app/data": Path("/data"),
        "/dev/termination-log": Path("/t"),
    },
    hosts={
        "mlflow.mlflow.svc.cluster.local": Host("127.64.0.9", {80: 20080}),
        "db.lab.svc.cluster.local": Host("127.64.0.7"),
        "gate-0.smoke.lab.svc.cluster.local": Host("127.64.0.5"),
    },
    buckets={"s3://ckpt-1": Path("/home/s3/ckpt-1"), "gs://ckpt_2": Path("/home/gs/ckpt_2")},
    databases={"dev.cluster-x.rds.amazonaws.com": Path("/home/databases/dev")},
)
OBJECTS: dict[tuple[str, str], dict[str, Any]] = {
    ("ConfigMap", "settings"): {"data": {"mode": "fast", "level": "3"}},
    ("Secret", "keys"): {"kind": "Secret", "data": {"token": base64.b64encode(b"s3cr3t").decode()}},
}
POD = Pod(
    namespace="lab", name="p-1", uid="u", ip="127.64.0.3", spec={"hostname": "gate-1"},
    labels={"app": "x"}, annotations={"rank": "1"},
)  # fmt: skip


def around(**fields: Any) -> Surroundings:
    return Surroundings(
        names=WORLD, lookup=lambda kind, name: OBJECTS.get((kind, name)), folder=Path("/pod"), **fields
    )


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("http://mlflow.mlflow.svc.cluster.local:80/api", "http://127.64.0.9:20080/api"),
        ("mlflow.mlflow.svc:80,localhost", "127.64.0.9:20080,localhost"),
        ("http://mlflow.mlflow:80", "http://127.64.0.9:20080"),
        ("http://user:pw@db/x", "http://user:pw@127.64.0.7/x"),
        ("db:5432", "127.64.0.7:5432"),
        ("gate-0.smoke.lab.svc.cluster.local", "127.64.0.5"),
        ("gate-0.smoke", "127.64.0.5"),
        ("http://mlflow.mlflow/x", "http://127.64.0.9:20080/x"),
        # Text that merely looks like a name stays.
        ("db", "db"),
        ("the db:5432 of old", "the db:5432 of old"),
        ("mlflow.mlflow.models", "mlflow.mlflow.models"),
        ("http://other.lab.svc.cluster.local/", "http://other.lab.svc.cluster.local/"),
        ("https://example.com/mlflow.mlflow", "https://example.com/mlflow.mlflow"),
        # Paths: whole steps, the longest mount first, also in lists and URLs.
        ("/opt/app/main.py", "/home/pods/app/main.py"),
        ("--out=/opt/app/data:/opt/app", "--out=/data:/home/pods/app"),
        ("file:///opt/app/x", "file:///home/pods/app/x"),
        ("/opt/application", "/opt/application"),
        ("/srv/opt/app", "/srv/opt/app"),
        ("/dev/termination-log", "/t"),
        ("s3://ckpt-1/runs/7", "file:///home/s3/ckpt-1/runs/7"),
        ("s3://ckpt-1", "file:///home/s3/ckpt-1"),
        ("--to=gs://ckpt_2/runs,x", "--to=file:///home/gs/ckpt_2/runs,x"),
        ("gs://ckpt-1/of-another-cloud", "gs://ckpt-1/of-another-cloud"),
        (
            "postgresql+psycopg2://{username}:{password}@dev.cluster-x.rds.amazonaws.com:5432/mlflow?sslmode=require",
            "sqlite:////home/databases/dev/mlflow.db",
        ),
        ("postgresql://u@elsewhere:5432/db", "postgresql://u@elsewhere:5432/db"),
    ],
)
def test_rewriting(text: str, local: str) -> None:
    assert rewrite(text, WORLD) == local


@given(st.text(alphabet="abc $(){}:/.-_=, \n", max_size=60))
def test_text_without_known_names_is_unchanged(text: str) -> None:
    assert rewrite(text, LocalNames(namespace="lab")) == text


def test_references_between_variables() -> None:
    assert expand("$(A)/$(B) $$(A) $A $(", {"A": "1"}) == "1/$(B) $(A) $A $("


def test_every_source_of_a_variable() -> None:
    memory = {"resource": "requests.memory", "divisor": "1Mi"}
    container = {
        "env": [
            {"name": "PLAIN", "value": "1"},
            {"name": "JOINED", "value": "$(PLAIN)-$(LATER)"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['rank']"}}},
            {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "no", "key": "x", "optional": True}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "MIB", "valueFrom": {"resourceFieldRef": memory}},
            {"name": "LATER", "value": "2"},
        ],
        "envFrom": [{"configMapRef": {"name": "settings"}, "prefix": "S_"}],
        "resources": {"limits": {"cpu": "1500m"}, "requests": {"memory": "2Gi"}},
    }
    found = environment(container, POD, around())
    assert found == {
        "S_mode": "fast", "S_level": "3", "PLAIN": "1", "JOINED": "1-$(LATER)", "IP": "127.64.0.3",
        "RANK": "1",
        "MODE": "fast", "TOKEN": "s3cr3t", "CPU": "2", "MIB": "2048", "LATER": "2",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "no", "key": "x"}}, 'configmap "no" not found'),
        ({"secretKeyRef": {"name": "keys", "key": "x"}}, "couldn't find key x in Secret lab/keys"),
        ({"fieldRef": {"fieldPath": "status.nothing"}}, "not supported by the downward API"),
    ],
)
def test_missing_references_are_named(source: dict[str, Any], message: str) -> None:
    with pytest.raises(ContainerConfigError, match=message):
        environment({"env": [{"name": "X", "valueFrom": source}]}, POD, around())


def test_the_plan_of_a_container() -> None:
    container = {
        "name": "main",
        "command": ["python", "/opt/app/main.zip"],
        "args": ["--plan", "$(PLAN)"],
        "env": [
            {"name": "PLAN", "value": "/opt/app/plan.json"},
            {"name": "HOST", "value": "0.0.0.0"},
            {"name": "GLOO_SOCKET_IFNAME", "value": "eth0"},
            {"name": "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY", "value": "/opt/app/devices"},
        ],
    }
    made = plan(container, POD, around(injected={"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}))
    assert made.argv == (sys.executable, "/home/pods/app/main.zip", "--plan", "/home/pods/app/plan.json")
    assert made.env["PLAN"] == "/home/pods/app/plan.json"
    assert made.env["HOST"] == POD.ip, "all addresses of a pod are its own one here"
    assert made.env["GLOO_SOCKET_IFNAME"] == "lo"
    kept = made.env["NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY"]
    assert kept == "/opt/app/devices", "must be the same on all nodes of a run"
    assert made.env["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert made.env["HOSTNAME"] == "gate-1"
    assert made.env["HOME"] == "/pod/home"


def test_a_bucket_that_does_not_exist_is_refused() -> None:
    container = {"command": ["python", "/opt/app/x"], "env": [{"name": "OUT", "value": "s3://missing/x"}]}
    with pytest.raises(ContainerConfigError, match="bucket 'missing'"):
        plan(container, POD, around())


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        (["python", "/code/main.py"], True),
        (["/usr/bin/python3.11", "-u", "/code/main.py"], True),
        (["python", "-m", "mlflow", "server"], False),
        (["python", "/elsewhere/main.py"], False),
        (["/bin/sh", "-c", "python /code/main.py"], False),
        ([], False),
    ],
)
def test_a_script_of_a_config_map_runs_here(command: list[str], ours: bool) -> None:
    assert is_ours({"command": command}, frozenset({"/code/main.py"})) is ours


@pytest.mark.parametrize(("module", "ours"), [("lib.main", True), ("lib.x", False), ("http.server", False)])
def test_a_module_below_the_working_directory_runs_here(module: str, ours: bool) -> None:
    container = {"command": ["python", "-m", module], "args": ["--x", "1"], "workingDir": "/code"}
    assert is_ours(container, frozenset({"/code/lib/main.py"})) is ours


def test_files_of_config_maps_and_secrets() -> None:
    binary = base64.b64encode(b"PK\x03\x04").decode()
    config_map = {"data": {"a": "x"}, "binaryData": {"z.zip": binary}}
    assert contents(config_map) == {"a": b"x", "z.zip": b"PK\x03\x04"}
    secret = {"kind": "Secret", "stringData": {"a": "x"}, "data": {"b": "eA=="}}
    assert contents(secret) == {"a": b"x", "b": b"x"}


def test_every_run_has_its_own_rendezvous_port() -> None:
    env = [{"name": "MASTER_PORT", "value": "29500"}, {"name": "SEEN", "value": "$(MASTER_PORT)"}]
    command = ["torchrun", "--master-port=$(MASTER_PORT)"]

    def port(**labels: str) -> str:
        found = plan({"command": command, "env": env}, replace(POD, labels=labels), around())
        assert found.argv[1] == f"--master-port={found.env['MASTER_PORT']}"
        assert found.env["SEEN"] == found.env["MASTER_PORT"]
        return found.env["MASTER_PORT"]

    jobs = [{"batch.kubernetes.io/controller-uid": uid} for uid in ("one", "two")]
    ports = [port(**job) for job in jobs]
    assert ports == [port(**job) for job in jobs] and len({*ports}) == 2
    assert all(20_000 <= int(each) < 32_000 for each in ports)
    of_set = {"jobset.sigs.k8s.io/jobset-uid": "set"}
    assert len({port(**job, **of_set) for job in jobs}) == 1, "one JobSet is one run"
    assert port() == "29500"
