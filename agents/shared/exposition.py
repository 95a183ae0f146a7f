"""The text format of Prometheus; standard library only.

Source: prometheus/docs, instrumenting/exposition_formats.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

Sample = tuple[Mapping[str, str], float]
"""Labels, in the order in which they are written, and the value."""


@dataclass(frozen=True)
class Metric:
    """One metric with all of its samples."""

    name: str
    kind: str
    """`counter` or `gauge`."""
    samples: Iterable[Sample]
    words: str = ""
    """What it is; default: no line says so."""


def text(metrics: Iterable[Metric]) -> str:
    """The metrics as Prometheus reads them: integers without a point, others as short as they are exact."""
    return "".join(f"{line}\n" for metric in metrics for line in _lines(metric))


def _lines(metric: Metric) -> Iterator[str]:
    if metric.words:
        yield f"# HELP {metric.name} {metric.words}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for labels, value in metric.samples:
        yield f"{metric.name}{_labels(labels)} {'+Inf' if value == float('inf') else repr(value)}"


def _labels(labels: Mapping[str, str]) -> str:
    said = [f'{key}="{_escaped(value)}"' for key, value in labels.items()]
    return f"{{{','.join(said)}}}" if said else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
