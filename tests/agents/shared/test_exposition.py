"""Metrics of programs, in the text format that Prometheus reads."""

from agents.shared.exposition import PrometheusMetric, text


def test_labels_are_escaped_and_numbers_are_exact() -> None:
    found = text(
        [
            PrometheusMetric("a_total", "counter", [({"owner": 'x "y" \\ \n'}, 3), ({}, 0.1)], "What it is."),
            PrometheusMetric("b", "gauge", [({}, float("inf"))]),
        ]
    )
    assert found == (
        "# HELP a_total What it is.\n# TYPE a_total counter\n"
        'a_total{owner="x \\"y\\" \\\\ \\n"} 3\na_total 0.1\n# TYPE b gauge\nb +Inf\n'
    )
