"""The probes of containers."""

from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import Object, absent, at, mapping, pod, text, whole
from rehearsal.kubernetes.rules.book import BOOK, CORE, PODS
from rehearsal.kubernetes.rules.violations import NEGATIVE, forbidden, invalid, required

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_SECONDS = (
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold",
)  # fmt: skip


def _probes(inputs: Properties) -> Iterator[tuple[str, str, Object]]:
    view = pod(inputs)
    for path, container in view.containers() if view else ():
        for kind in _PROBES:
            if isinstance(container.get(kind), dict):
                yield f"{path}.{kind}", kind, mapping(container[kind])


@BOOK.rule("K8S-PROBE-001", *PODS, source=CORE)
def _one_handler(inputs: Properties) -> Iterator[Violation]:
    """A probe has exactly one handler."""
    for path, _, probe in _probes(inputs):
        given = [handler for handler in _HANDLERS if probe.get(handler) is not None]
        if not given:
            yield required(path, "must specify a handler type")
        for extra in given[1:]:
            yield forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")


@BOOK.rule("K8S-PROBE-002", *PODS, source="pulumi-kubernetes 4.34.2 core/v1 Probe.success_threshold")
def _one_success(inputs: Properties) -> Iterator[Violation]:
    """One success is enough for liveness and startup."""
    for path, kind, probe in _probes(inputs):
        successes = whole(probe.get("successThreshold"))
        if kind != "readinessProbe" and successes not in (None, 0, 1):
            yield invalid(f"{path}.successThreshold", successes, "must be 1")


@BOOK.rule("K8S-PROBE-003", *PODS, source=CORE)
def _numbers(inputs: Properties) -> Iterator[Violation]:
    """Delays, periods and thresholds are not negative."""
    for path, _, probe in _probes(inputs):
        for key in _SECONDS:
            number = whole(probe.get(key))
            if number is not None and number < 0:
                yield invalid(f"{path}.{key}", number, NEGATIVE)


@BOOK.rule("K8S-PROBE-004", *PODS, source=CORE)
def _targets(inputs: Properties) -> Iterator[Violation]:
    """A probe's port is valid; an exec probe has a command."""
    for path, _, probe in _probes(inputs):
        for handler in ("httpGet", "tcpSocket", "grpc"):
            target = at(probe, f"{handler}.port")
            number, label = whole(target), text(target)
            wrong = None
            if number is not None:
                wrong = grammar.port(number)
            elif label is not None:
                wrong = grammar.port_name(label)
            if wrong:
                yield invalid(f"{path}.{handler}.port", target, wrong)
        if isinstance(probe.get("exec"), dict) and absent(at(probe, "exec.command")):
            yield required(f"{path}.exec.command")
