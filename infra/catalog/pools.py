"""Checks of node pools and their zones on every cloud."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from infra.catalog.errors import UnknownFactError
from infra.errors import Problem

RESERVED_LABELS: Final = "trainstack.dev/"
"""Prefix of the labels that pools set themselves."""


def label_problems(path: str, keys: Iterable[str]) -> Iterator[Problem]:
    """Additional labels of a pool's nodes do not use the reserved prefix."""
    for key in keys:
        if key.startswith(RESERVED_LABELS):
            rule, fix = f"the prefix {RESERVED_LABELS} is reserved for pools", "Rename it."
            yield Problem(path, key, rule, fix, code="label-prefix-reserved")


def cpu_type_problems(path: str, name: str, known: Collection[str]) -> Iterator[Problem]:
    """The type is a CPU type in the catalog.

    Unknown types are refused, as for GPU types: a misspelling would fail only after the cluster is created,
    and another family is one row of `cpu_families.toml`.
    """
    if name not in known:
        near = UnknownFactError("CPU type", name, known).nearest
        rule, fix = "unknown CPU type", f"Near it are {', '.join(near)}."
        yield Problem(path, name, rule, fix, code="unknown-cpu-type")


def gpu_type_problems(path: str, name: str, find: Callable[[str], object]) -> Iterator[Problem]:
    """The type has GPUs and is in the catalog, where `find` finds it."""
    try:
        find(name)
    except UnknownFactError as error:
        rule, fix = "unknown GPU type", f"Near it are {', '.join(error.nearest)}."
        yield Problem(path, name, rule, fix, code="unknown-gpu-type")


def once_problems(path: str, zones: Sequence[str]) -> Iterator[Problem]:
    """Each zone is named once."""
    if len(set(zones)) != len(zones):
        rule, fix = "a zone is named twice", "Name each zone once."
        yield Problem(path, list(zones), rule, fix, code="zone-named-twice")


def rdma_zone_problems(path: str, zones: int) -> Iterator[Problem]:
    """A pool with RDMA (EFA on AWS) is in one zone."""
    if zones > 1:
        rule = "RDMA does not cross zones, so the pool needs exactly one zone"
        yield Problem(path, zones, rule, "Keep one zone, or disable RDMA.", code="rdma-needs-one-zone")


def reserved_zone_problems(path: str, zones: int) -> Iterator[Problem]:
    """A pool on reserved capacity is in one zone."""
    if zones > 1:
        rule, fix = "a reservation is in one zone", "Keep the zone of the reservation."
        yield Problem(path, zones, rule, fix, code="reservation-needs-one-zone")


def order_problems(least_path: str, least: float, most_path: str, most: float) -> Iterator[Problem]:
    """The minimum is not above the maximum."""
    if least > most:
        fix = f"Lower it or raise {most_path}."
        rule = f"above the maximum, {most:g}"
        yield Problem(least_path, least, rule, fix, against=most_path, code="minimum-above-maximum")


def sharing_problems(path: str, kind: str, purpose: str, rdma_path: str, *, rdma: bool) -> Iterator[Problem]:
    """GPUs are shared only in interactive pools: a training run on a part of a GPU is disturbed by others."""
    if purpose != "interactive":
        fix = "Leave it out, or make the pool interactive."
        rule = "GPUs are shared in interactive pools only"
        yield Problem(path, kind, rule, fix, code="sharing-not-interactive")
    if rdma:
        rule, fix = "shared GPUs do not support RDMA", f"Set {rdma_path} to false."
        yield Problem(path, kind, rule, fix, against=rdma_path, code="sharing-with-rdma")


def partition_problems(
    path: str, partition: str, title: str, sizes: Mapping[str, int], able: Sequence[str]
) -> Iterator[Problem]:
    """The GPU `title` can be cut into partitions of that size; `able` are the GPUs that can be cut."""
    if not sizes:
        fix = f"Share it by `time_sharing`, or use a type with {', '.join(able)}."
        rule = f"no partitions of {title} are known"
        yield Problem(path, partition, rule, fix, code="gpu-without-partitions")
    elif partition not in sizes:
        rule, fix = f"not a partition of {title}", f"It has {', '.join(sizes)}."
        yield Problem(path, partition, rule, fix, code="unknown-partition")
