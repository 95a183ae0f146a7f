"""What a machine lacks for a control plane is said; what it has in the right version is used."""

import re
from pathlib import Path

import pytest

from infra.engine.golang import SetupError
from rehearsal.controlplane import binaries

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of this machine is found or written."""
    monkeypatch.setattr(binaries, "HOME", tmp_path)
    monkeypatch.setattr(binaries, "FOLDER", tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv(binaries.ASSETS_VARIABLE, raising=False)
    return tmp_path


def released(folder: Path, name: str, version: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho Kubernetes {version}\n")
    path.chmod(0o755)
    return path


def test_without_go_it_says_what_to_install_and_is_not_ready() -> None:
    assert binaries.ready() is None
    with pytest.raises(SetupError, match=r"no Go to build etcd with. Install Go"):
        binaries.require()


def test_the_build_before_the_tests_says_so_and_lets_them_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert binaries.main() == 0
    assert "control plane: not available on this machine: there is no Go" in capsys.readouterr().out


def test_a_released_binary_of_exactly_the_version_is_used(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = binaries.BINARIES["kube-apiserver"].version
    monkeypatch.setenv(binaries.ASSETS_VARIABLE, str(elsewhere / "assets"))
    path = released(elsewhere / "assets", "kube-apiserver", wanted)
    assert binaries._found("kube-apiserver") == path
    released(elsewhere / "assets", "kube-apiserver", wanted + "0")
    assert binaries._found("kube-apiserver") is None


def test_what_was_built_from_other_sources_is_built_again(elsewhere: Path) -> None:
    path = released(elsewhere / "bin", "etcd", "v0")
    stamp = elsewhere / "bin" / "etcd.stamp"
    stamp.write_text(binaries._fingerprint("etcd"))
    assert binaries._found("etcd") == path
    stamp.write_text("of another go.mod")
    assert binaries._found("etcd") is None


def test_versions_are_those_of_the_modules_and_of_the_charts() -> None:
    versions = {name: binary.version for name, binary in binaries.BINARIES.items()}
    assert all(re.fullmatch(r"v\d+\.\d+\.\d+", version) for version in versions.values())
    charts = (ROOT / "components" / "kubernetes" / "charts.toml").read_text()
    assert f'version = "{versions["kueue"].removeprefix("v")}"' in charts
