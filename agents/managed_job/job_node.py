"""Rank and hosts of a node in its job."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class JobNode:
    """Rank of this node. `hosts` has the same order on every node; the first is the rendezvous."""

    hosts: tuple[str, ...]
    index: int
    job: str | None = None
    machine: str | None = None
    interface: str | None = None

    @property
    def first(self) -> str:
        """Host of the rendezvous."""
        return self.hosts[0]

    @property
    def nodes(self) -> int:
        """Number of nodes of the job."""
        return len(self.hosts)


ALONE = JobNode(hosts=("localhost",), index=0)
