"""The way on where `destroy` cannot reach a cluster: its objects are deleted through its API server."""

from collections.abc import Iterable, Iterator

# Of the provider (pulumi-kubernetes provider/pkg/provider/provider.go), and of a rehearsed control plane.
_SAYS = ("Kubernetes cluster is unreachable", "ClusterUnreachable")


def explained(stack: str, errors: Iterable[str]) -> Iterator[str]:
    """The next steps after these errors; none where no cluster fails to answer."""
    if any(words in error for error in errors for words in _SAYS):
        yield f"The cluster of {stack} does not answer. Restore the way to it, and repeat the command."
        forget = f"PULUMI_K8S_DELETE_UNREACHABLE=true trainstack refresh -s {stack} --yes"
        yield f"If it is gone for good, `{forget}` removes its objects from the state first."
