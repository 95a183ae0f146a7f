"""The time of a checkpoint as the annotation has it; what the API server says to it: tests/cluster/queues."""

from pathlib import Path

import pytest

from smoke_training.runtime.announcement import AnnotationRefusedError, announce, written


def test_a_time_is_written_in_utc() -> None:
    assert written(0.9) == "1970-01-01T00:00:00Z"
    assert written(1_795_639_199) == "2026-11-25T20:39:59Z"


def test_outside_of_a_pod_nothing_is_announced(tmp_path: Path) -> None:
    assert announce(0.0, tmp_path) is False


def test_an_api_server_that_is_away_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ssl

    bundle = ssl.get_default_verify_paths().cafile
    assert bundle
    (tmp_path / "ca.crt").write_bytes(Path(bundle).read_bytes())
    for name, text in {"token": "t", "name": "run-0-abc", "namespace": "vision"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    with pytest.raises(AnnotationRefusedError, match="pod vision/run-0-abc"):
        announce(0.0, tmp_path)
