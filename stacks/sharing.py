"""Sharing of GPUs as the spec says it, as arguments of components."""

from components.kubernetes.gpu_sharing import SharingArgs
from infra.stackspec.sharing import MigSpec, TimeSharingSpec


def sharing_args(wanted: TimeSharingSpec | MigSpec) -> SharingArgs:
    """The arguments of a pool with shared GPUs."""
    if isinstance(wanted, MigSpec):
        return {"kind": wanted.kind, "partition": wanted.partition}
    return {"kind": wanted.kind, "clients": wanted.clients}
