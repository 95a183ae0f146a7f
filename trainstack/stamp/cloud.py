"""Facts and forms of a cloud for the files of a new client."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra.stackspec import StackSpec

Zones = Sequence[str]


@dataclass(frozen=True, kw_only=True)
class StampedCloud:
    """Names, facts and forms of a cloud for stack files."""

    shipped: Mapping[str, str]
    """The shipped stack file that is nearest, by profile."""
    account_key: str
    """The key of the account or project below `on`."""
    account: re.Pattern[str]
    account_rule: str
    account_example: str
    regions: Mapping[str, Any]
    """Facts of each region; `zones` are its zones."""
    offering_zones: Callable[[str, str], Zones | None]
    """Zones that offer a machine, by machine and region; None: unknown."""
    pool_zones: Callable[[Zones, Zones], Zones]
    """Zones of a shipped pool that stay, by those and the zones that offer its machine."""
    training_zone: Callable[[Zones, Zones], str]
    """Zone of a pool, by the zones of the one that it replaces and those that offer its machine."""
    accelerator: Callable[[str], str]
    """Accelerator of a machine as the policies call it; empty for a machine without, or unknown."""
    substitute: Callable[[str, str], str]
    """The text of a stack file, with other machines where the region has not the shipped ones."""
    account_answers: Callable[[StackSpec], Mapping[str, Mapping[str, Any]]]
    """Results of functions about the account, by token, as far as a spec knows them."""
    reserved: tuple[str, ...] = ()
    """Beginnings of names that deployers may not change, so that no stack has them."""
    cluster_locks: Sequence[str] = ()
    """Locks of what pipelines install beside the package to log in to a cluster."""
    jobs_prefix: str = ""
    """In front of the machines of jobs without a cluster."""
    rdma: bool = False
    """Whether a pool of several nodes asks for RDMA by its field."""
