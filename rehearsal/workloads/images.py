"""Images that no kubelet can pull, as far as their names show it: no image is pulled in a rehearsal.

Names follow the grammar of distribution/reference v0.6 (regexp.go). Registries in the domain `invalid` never
exist (RFC 6761), so a user can rehearse an image that cannot be pulled.
"""

import re

from rehearsal.workloads.waiting import WaitingError

_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_NAME = re.compile(
    rf"(?:(?P<domain>{_DOMAIN})/)?{_COMPONENT}(?:/{_COMPONENT})*(?::\w[\w.-]{{0,127}})?(?:@{_DIGEST})?",
    re.ASCII,
)


def pullable(image: str) -> None:
    """Raise WaitingError, with the kubelet's reason, for an image that cannot be pulled."""
    found = _NAME.fullmatch(image)
    if found is None:
        words = f'Failed to apply default image tag "{image}": invalid reference format'
        raise WaitingError("InvalidImageName", words)
    host = (found["domain"] or "").partition(":")[0].lower()
    if host.endswith(".invalid"):
        words = f'Back-off pulling image "{image}": ErrImagePull: dial tcp: lookup {host}: no such host'
        raise WaitingError("ImagePullBackOff", words)
