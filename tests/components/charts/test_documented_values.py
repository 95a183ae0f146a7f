"""Values of charts whose source is no Go module: held against what their charts document."""

import re

import pytest

from components.kubernetes.charts import charts
from rehearsal.controlplane.binaries import FILES
from tests.components.charts.documented_values import ADDONS, FOLDER, handed_on, noted, unknown
from tests.components.charts.installed import addon_settings, installed, keys, misspelt

NOTED = sorted(path.stem for path in FOLDER.glob("*.toml"))


def test_every_pinned_chart_is_installed_by_a_stack_and_has_a_judge() -> None:
    assert set(installed()) == set(charts())
    assert set(charts()) == {*NOTED, *(name for name in FILES if name in charts())}
    assert not set(NOTED) & set(FILES)


@pytest.mark.parametrize("chart", NOTED)
def test_what_was_read_is_the_version_that_is_pinned(chart: str) -> None:
    assert noted(chart).version == charts()[chart].version


@pytest.mark.parametrize("chart", NOTED)
def test_a_chart_knows_every_value_it_is_given(chart: str) -> None:
    for release in installed()[chart]:
        assert list(unknown(release["values"], noted(chart).values)) == []


@pytest.mark.parametrize("chart", NOTED)
def test_every_misspelt_value_is_seen(chart: str) -> None:
    documented = noted(chart).values
    for release in installed()[chart]:
        for path in keys(release["values"]):
            if not handed_on(path, documented):
                (said,) = unknown(misspelt(release["values"], path), documented)
                assert f"{path[-1]}X: " in said


def test_a_value_of_another_kind_is_seen() -> None:
    documented = noted("dcgm-exporter").values
    for key, value, kinds in (
        ("tolerations", {"operator": "Exists"}, ("a list", "a map")),
        ("serviceMonitor", True, ("a map", "a boolean")),
        ("hostPID", "false", ("a boolean", "a string")),
    ):
        (problem,) = unknown({key: value}, documented)
        assert re.fullmatch(rf"{key}: .* {kinds[0]}, .* {kinds[1]}", problem)


def test_every_setting_of_an_add_on_is_one_that_it_documents() -> None:
    assert set(addon_settings()) == {path.stem for path in ADDONS.glob("*.toml")}
    for name, settings in addon_settings().items():
        assert list(unknown(settings, noted(name, ADDONS).values)) == []


def test_a_misspelt_setting_of_an_add_on_is_seen() -> None:
    settings = addon_settings()["eks-node-monitoring-agent"]
    documented = noted("eks-node-monitoring-agent", ADDONS).values
    for path in keys(settings):
        if not handed_on(path, documented):
            assert list(unknown(misspelt(settings, path), documented))
