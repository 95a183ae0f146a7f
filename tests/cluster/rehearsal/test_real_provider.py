"""The installed provider is started as it is, with a control plane that runs and a login to it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.engine.golang import SetupError
from rehearsal import control
from rehearsal.client import Rehearsal
from rehearsal.cluster_kind import ClusterKind, ProviderKind
from rehearsal.controlplane.api import Access, KubernetesApi

# Says what it is given as the engine's first line would be read, then asks for a login as client-go does.
STAND_IN = """#!/bin/sh
echo "$1"
exec {login}
"""
LOGINS = (
    "aws --region us-east-1 eks get-token --cluster-name dev --output json",
    "gke-gcloud-auth-plugin --use_application_default_credentials",
)


@pytest.fixture
def rehearsal(tmp_path: Path) -> Iterator[Rehearsal]:
    rehearsal = Rehearsal(tmp_path / "home")
    yield rehearsal
    rehearsal.stop()


def test_a_provider_that_is_not_installed_is_named(
    rehearsal: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="pulumi-resource-kubernetes"):
        rehearsal.choose(ClusterKind.REAL, ProviderKind.REAL)


@pytest.mark.more
@pytest.mark.parametrize("login", LOGINS, ids=lambda one: one.split()[0])
def test_the_installed_provider_is_started_with_a_login_to_the_control_plane(
    rehearsal: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: str
) -> None:
    installed = tmp_path / "pulumi" / "plugins" / "resource-kubernetes-v4.30.0" / "pulumi-resource-kubernetes"
    installed.parent.mkdir(parents=True)
    installed.write_text(STAND_IN.format(login=login))
    installed.chmod(0o700)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    rehearsal.choose(ClusterKind.REAL, ProviderKind.REAL)
    rehearsal.environment()
    # It stays while the stand-in comes and goes.
    connection, _ = control.lease(rehearsal.home, {"op": "hold", "engine": os.getpid()}, patience_s=60)
    (launcher,) = (rehearsal.home / "pulumi" / "plugins").glob("resource-kubernetes-*/pulumi-resource-*")

    # A cluster of a cloud with the objects and the address of the one of programs that make none.
    planes = rehearsal.home / "control-plane"
    shutil.copytree(planes / "ambient", planes / "dev.us-east-1.123456789012")
    server = json.loads((planes / "ambient" / "access.json").read_text())["server"]
    monkeypatch.setenv("KUBERNETES_EXEC_INFO", json.dumps({"spec": {"cluster": {"server": server}}}))

    done = subprocess.run(
        [str(launcher), "127.0.0.1:1"], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stderr
    address, _, answer = done.stdout.partition("\n")
    assert address == "127.0.0.1:1"
    status = json.loads(answer)["status"]
    pair = tmp_path / "client.crt", tmp_path / "client.key"
    for file, name in zip(pair, ("clientCertificateData", "clientKeyData"), strict=True):
        file.write_text(status[name])
    kubeconfig = json.loads(rehearsal.kubeconfig().read_text())
    said = kubeconfig["clusters"][0]["cluster"]
    with KubernetesApi(Access(said["server"], Path(said["certificate-authority"]), *pair)) as api:
        assert api.get("v1", "Namespace", "default")["metadata"]["name"] == "default"
    connection.close()
