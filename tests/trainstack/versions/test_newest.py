"""The newest releases of charts, from responses of their repositories."""

import json

import pytest

from trainstack.version_order import order
from trainstack.versions import newest


def test_charts_of_a_helm_repository_are_in_its_index() -> None:
    index = b"entries:\n  a:\n  - version: 1.2.0\n  - version: 1.10.0\n  - version: 2.0.0-rc.1\n  b: []\n"
    asked: list[str] = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        return index

    assert newest.chart("a", "https://charts.example/stable", fetch) == "1.10.0"
    assert newest.chart("b", "https://charts.example/stable", fetch) is None
    assert asked == ["https://charts.example/stable/index.yaml"] * 2


def test_charts_of_a_registry_are_its_tags() -> None:
    def fetch(url: str) -> bytes:
        assert url == "https://registry.k8s.io/v2/kueue/charts/kueue/tags/list"
        return json.dumps({"tags": ["0.19.2", "0.20.0", "0.21.0-rc.0", "latest"]}).encode()

    assert newest.chart("oci://registry.k8s.io/kueue/charts/kueue", None, fetch) == "0.20.0"


@pytest.mark.parametrize(("one", "other"), [("1.9", "1.10"), ("v1.21.1-eksbuild.9", "v1.21.1-eksbuild.10")])
def test_order(one: str, other: str) -> None:
    assert order(one) < order(other)
