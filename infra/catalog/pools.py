"""What holds for pools of nodes and their zones on every cloud."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from infra.catalog.errors import UnknownFactError
from infra.errors import Problem

RESERVED_LABELS: Final = "trainstack.dev/"
"""Prefix of the labels that pools set themselves."""


def label_problems(path: str, keys: Iterable[str]) -> Iterator[Problem]:
    """Further labels of a pool's nodes."""
    for key in keys:
        if key.startswith(RESERVED_LABELS):
            yield Problem(
                path,
                key,
                f"the prefix {RESERVED_LABELS} is reserved for pools",
                "Rename it.",
                code="label-prefix-reserved",
            )


def cpu_type_problems(path: str, name: str, known: Collection[str]) -> Iterator[Problem]:
    """The type is one of the CPU types of a cloud that the catalog knows.

    An unknown type is refused, as an unknown GPU type is: a misspelling would fail only after the cluster
    has been made, and a further family is one row of `cpu_families.toml`.
    """
    if name not in known:
        near = UnknownFactError("CPU type", name, known).nearest
        yield Problem(
            path, name, "unknown CPU type", f"Near it are {', '.join(near)}.", code="unknown-cpu-type"
        )


def once_problems(path: str, zones: Sequence[str]) -> Iterator[Problem]:
    """Each zone is named once."""
    if len(set(zones)) != len(zones):
        yield Problem(
            path, list(zones), "a zone is named twice", "Name each zone once.", code="zone-named-twice"
        )


def rdma_zone_problems(path: str, zones: int) -> Iterator[Problem]:
    """A pool whose nodes talk over RDMA (EFA on AWS) is in one zone."""
    if zones > 1:
        rule = "RDMA does not cross zones, so the pool needs exactly one zone"
        yield Problem(path, zones, rule, "Keep one zone, or do without RDMA.", code="rdma-needs-one-zone")


def reserved_zone_problems(path: str, zones: int) -> Iterator[Problem]:
    """A pool on reserved capacity is in one zone."""
    if zones > 1:
        yield Problem(
            path,
            zones,
            "a reservation is in one zone",
            "Keep the zone of the reservation.",
            code="reservation-needs-one-zone",
        )


def order_problems(least_path: str, least: float, most_path: str, most: float) -> Iterator[Problem]:
    """What is least is not above what is most."""
    if least > most:
        fix = f"Lower it or raise {most_path}."
        yield Problem(
            least_path,
            least,
            f"above the largest, {most:g}",
            fix,
            against=most_path,
            code="minimum-above-maximum",
        )
