"""Sizes of Managed Lustre file systems."""

from collections.abc import Iterator

from infra.catalog.gcp import facts
from infra.catalog.gcp.model import bands_in_words, nearest_in_bands
from infra.errors import Problem

_UNIT = "MB/s per TiB"


def size_problems(path: str, capacity_gib: int, throughput_path: str, throughput: int) -> Iterator[Problem]:
    """A capacity in GiB at a throughput in MB/s per TiB is a step of a tier that exists."""
    tier = facts.lustre_tiers.get(throughput)
    if tier is None:
        offered = sorted(facts.lustre_tiers)
        nearest = min(offered, key=lambda one: (abs(one - throughput), one))
        rule = f"must be one of {', '.join(map(str, offered))} {_UNIT}"
        fix = f"Set {nearest}."
        yield Problem(throughput_path, throughput, rule, fix, code="lustre-throughput-not-offered")
    elif tier.problem(capacity_gib):
        rule = f"not a size at {throughput} {_UNIT}: {bands_in_words(tier.bands)} GiB"
        choice = " or ".join(map(str, nearest_in_bands(capacity_gib, tier.bands)))
        fix = f"Set {choice}."
        yield Problem(path, capacity_gib, rule, fix, against=throughput_path, code="lustre-size-not-offered")


def rdma_problems(path: str, *, rdma: bool) -> Iterator[Problem]:
    """Clients use TCP: an instance has no setting for RDMA (pulumi-gcp 10.2.0 lustre.Instance)."""
    if rdma:
        fix = "Set it to false; for faster reads, raise throughput_mb_s_per_tib."
        yield Problem(path, True, "clients of Managed Lustre have no RDMA", fix, code="lustre-without-rdma")
