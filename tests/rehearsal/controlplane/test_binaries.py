"""Binaries of a control plane: missing tools are reported, binaries of the right version are used."""

import re
from pathlib import Path

import pytest

from infra.engine.golang import SetupError
from rehearsal.controlplane import binaries

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Isolate the test from files of this machine."""
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


def test_without_go_it_reports_what_to_install_and_is_not_ready() -> None:
    assert binaries.ready() is None
    with pytest.raises(SetupError, match=r"etcd.* Install Go"):
        binaries.require()


def test_a_failed_build_before_the_tests_is_reported_and_not_fatal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert binaries.main() == 0
    assert "control plane:" in capsys.readouterr().out


def test_a_released_binary_of_exactly_the_version_is_used(
    isolated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = binaries.BINARIES["kube-apiserver"].version
    monkeypatch.setenv(binaries.ASSETS_VARIABLE, str(isolated / "assets"))
    path = released(isolated / "assets", "kube-apiserver", wanted)
    assert binaries._found("kube-apiserver") == path
    released(isolated / "assets", "kube-apiserver", wanted + "0")
    assert binaries._found("kube-apiserver") is None


def test_what_was_built_from_other_sources_is_built_again(isolated: Path) -> None:
    path = released(isolated / "bin", "etcd", "v0")
    stamp = isolated / "bin" / "etcd.stamp"
    stamp.write_text(binaries._fingerprint("etcd"))
    assert binaries._found("etcd") == path
    stamp.write_text("of another go.mod")
    assert binaries._found("etcd") is None


def test_versions_are_those_of_the_modules_and_of_the_charts() -> None:
    versions = {name: binary.version for name, binary in binaries.BINARIES.items()}
    assert all(re.fullmatch(r"v\d+\.\d+\.\d+", version) for version in versions.values())
    charts = (ROOT / "components" / "kubernetes" / "charts.toml").read_text()
    assert f'version = "{versions["kueue"].removeprefix("v")}"' in charts
