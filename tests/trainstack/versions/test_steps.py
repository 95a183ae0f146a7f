"""The steps of an update: no minor version of Kubernetes and no schema of a chart is skipped."""

import pytest

from agents.shared.schemas import SchemaLine, number, path
from components.kubernetes.charts import charts
from components.kubernetes.definitions.schemas import schemas
from trainstack.versions.pins import Pin, Row


def steps(kind: str, name: str, pinned: str, newest: str) -> list[str]:
    return Row(Pin(kind, name, pinned, "nothing"), newest).steps


@pytest.mark.parametrize(
    ("pinned", "newest", "expected"),
    [
        ("1.34", "1.36", ["1.35", "1.36"]),
        ("1.35", "1.36", ["1.36"]),
        ("1.36", "1.36", []),
        ("1.36", "1.35", []),
        ("1.33", "1.36", ["1.34", "1.35", "1.36"]),
    ],
)
def test_a_control_plane_goes_by_one_minor_version(pinned: str, newest: str, expected: list[str]) -> None:
    assert steps("Kubernetes", "control plane", pinned, newest) == expected


@pytest.mark.parametrize(
    ("pinned", "newest", "expected"),
    [
        ("0.19.2", "0.20.8", ["0.20.8"]),  # stores v1beta2, which 0.20 reads
        ("0.15.3", "0.20.8", ["0.19.2", "0.20.8"]),  # stores v1beta1, which 0.20 does not read
        ("0.14.2", "0.19.2", ["0.19.2"]),
        ("0.14.2", "0.21.0", ["0.19.2", "0.21.0"]),
        ("0.9.0", "0.19.2", []),  # before the first known line
    ],
)
def test_kueue_goes_through_the_release_that_still_reads_what_is_stored(
    pinned: str, newest: str, expected: list[str]
) -> None:
    assert steps("chart", "kueue", pinned, newest) == expected


def test_charts_without_definitions_go_at_once() -> None:
    assert steps("chart", "dcgm-exporter", "4.8.2", "5.0.0") == ["5.0.0"]


def test_objects_pass_through_every_version_in_which_they_can_be_stored() -> None:
    lines = [
        SchemaLine("1.0", "1.9", ["a"], "a"),
        SchemaLine("2.0", "2.9", ["a", "b"], "b"),
        SchemaLine("3.0", "3.9", ["b", "c"], "c"),
        SchemaLine("4.0", "4.9", ["c"], "c"),
    ]
    assert path(lines, "a", "4.2") == ["2.9", "3.9", "4.2"]
    assert path(lines, "c", "4.2") == ["4.2"]
    # Back to a version that does not read what is stored, there is no path.
    assert path(lines, "c", "2.5") == []
    assert path(lines, "b", "2.5") == ["2.5"]


@pytest.mark.parametrize("chart", schemas())
def test_the_pinned_version_is_of_a_known_line_and_lines_ascend(chart: str) -> None:
    lines = schemas()[chart].lines
    bounds = [number(bound) for line in lines for bound in (line.since, line.through)]
    assert bounds == sorted(bounds)
    assert number(lines[0].since) <= number(charts()[chart].version) <= bounds[-1]
    assert all(line.stored in line.served for line in lines)
