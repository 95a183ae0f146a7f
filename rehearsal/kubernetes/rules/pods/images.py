"""Images of containers, and ports of the node that containers take."""

import re
from collections.abc import Iterator
from typing import Any

from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules.accessors import pod, rows, text, whole
from rehearsal.kubernetes.rules.book import BOOK, CORE, PODS, ClusterView
from rehearsal.kubernetes.rules.violations import duplicate, invalid, no_pod

# source: distribution/reference regexp.go (ReferenceRegexp)
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::[\w][\w.-]{{0,127}})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)


def _refused(inputs: Properties, path: str, value: Any, detail: str, fix: str) -> Violation:
    """A value that the API server refuses in a pod, but not in the template of its owner."""
    found = invalid(path, value, detail, fix)
    return found if inputs["kind"] == "Pod" else no_pod(inputs, path, found.message, fix)


@BOOK.rule_around("K8S-POD-018", *PODS, source=f"{CORE} (validateContainersOnlyForPod)")
def _trimmed_image(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """The image of a pod's container has no blank before or after it."""
    view = pod(inputs)
    for path, container in view.containers() if view else ():
        image = text(container.get("image"))
        if image and image != image.strip():
            detail, fix = "must not have leading or trailing whitespace", f"Write {image.strip()}."
            yield _refused(inputs, f"{path}.image", image, detail, fix)


@BOOK.rule_around(
    "K8S-POD-019", *PODS, source="distribution/reference regexp.go; kubelet: InvalidImageName", advice=True
)
def _reference(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """The image of a container is a reference that a container runtime can read."""
    view = pod(inputs)
    for path, container in view.containers() if view else ():
        image = text(container.get("image"))
        if image and image == image.strip() and not _REFERENCE.fullmatch(image):
            yield Violation(
                f"{path}.image",
                f"InvalidImageName: couldn't parse image name {image!r}: invalid reference format",
                "Write [host[:port]/]name[:tag][@digest], the name in lower case.",
                advice=True,
            )


@BOOK.rule_around("K8S-POD-020", *PODS, source=f"{CORE} (validateHostNetwork)")
def _host_network(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """In the network of its node, a container has the same port inside and outside."""
    view = pod(inputs)
    if view is None or view.spec.get("hostNetwork") is not True:
        return
    for path, container in view.containers():
        for index, port in rows(container.get("ports")):
            inside, outside = whole(port.get("containerPort")), whole(port.get("hostPort"))
            if inside is not None and outside and inside != outside:
                here, fix = f"{path}.ports[{index}].hostPort", f"Write {inside}, or leave it out."
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield _refused(inputs, here, outside, detail, fix)


@BOOK.rule("K8S-POD-021", *PODS, source=f"{CORE} (checkHostPortConflicts)")
def _host_ports(inputs: Properties) -> Iterator[Violation]:
    """A port of the node is taken by one container."""
    view = pod(inputs)
    seen: set[tuple[str, str, int]] = set()
    for path, container in view.containers() if view else ():
        for index, port in rows(container.get("ports")):
            number = whole(port.get("hostPort"))
            key = (str(port.get("protocol") or "TCP"), str(port.get("hostIP") or ""), number or 0)
            if number and key in seen and ".containers[" in path:
                yield duplicate(f"{path}.ports[{index}].hostPort", "/".join(map(str, key)))
            if ".containers[" in path:
                seen.add(key)
