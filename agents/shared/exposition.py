"""The text format of Prometheus; standard library only.

Source: prometheus/docs, instrumenting/exposition_formats.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

Sample = tuple[Mapping[str, str], float]
"""Labels, in the order in which they are written, and the value."""


@dataclass(frozen=True)
class PrometheusMetric:
    """One metric with all of its samples."""

    name: str
    kind: str
    """`counter` or `gauge`."""
    samples: Iterable[Sample]
    words: str = ""
    """Text of the HELP line; default: none."""


def text(metrics: Iterable[PrometheusMetric]) -> str:
    """The metrics in the format of Prometheus: integers without a point, others exact."""
    return "".join(f"{line}\n" for metric in metrics for line in _lines(metric))


def _lines(metric: PrometheusMetric) -> Iterator[str]:
    if metric.words:
        yield f"# HELP {metric.name} {metric.words}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for labels, value in metric.samples:
        yield f"{metric.name}{_labels(labels)} {'+Inf' if value == float('inf') else repr(value)}"


def _labels(labels: Mapping[str, str]) -> str:
    pairs = [f'{key}="{_escaped(value)}"' for key, value in labels.items()]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
