"""Rules of the checkpoint policy: space and retention of kept checkpoints."""

from collections.abc import Callable, Iterator

from infra.catalog.registry import CATALOGS
from infra.catalog.storage_classes import Move, move_problems
from infra.errors import Problem
from infra.stackspec.stack import StackSpec

Rule = Callable[[StackSpec], Iterator[Problem]]
_PATH = "data.checkpoints"
_GB_PER_GIB = 1.073741824


def interval(spec: StackSpec) -> Iterator[Problem]:
    """The kept checkpoints fit between the first one and its expiry."""
    policy = spec.data.checkpoints
    minutes, days = policy.interval_minutes, policy.expire_days
    if minutes is None:
        return
    against = f"{_PATH}.expire_days"
    if minutes > days * 1440:
        rule = f"the bucket deletes a checkpoint after {days * 1440} minutes, before the next one is written"
        fix = f"Set {days * 1440} or less, or keep them longer."
        yield Problem(
            f"{_PATH}.interval_minutes", minutes, rule, fix, against=against, code="interval-exceeds-expiry"
        )
    elif policy.keep_last * minutes > days * 1440:
        spans = policy.keep_last * minutes / 1440
        many = f"{policy.keep_last} x {minutes} minutes"
        rule = f"{many} are {spans:.1f} days, and the bucket deletes after {days}"
        fix = (
            f"Set {days * 1440 // minutes} or less, or {against} to {-(-policy.keep_last * minutes // 1440)}."
        )
        yield Problem(
            f"{_PATH}.keep_last", policy.keep_last, rule, fix, against=against, code="kept-exceed-expiry"
        )


def milestones(spec: StackSpec) -> Iterator[Problem]:
    """`keep_every_hours` is not longer than the expiry."""
    policy = spec.data.checkpoints
    if policy.keep_every_hours is not None and policy.keep_every_hours > policy.expire_days * 24:
        rule = f"the bucket deletes after {policy.expire_days * 24} hours, before a second one is kept"
        fix = f"Set {policy.expire_days * 24} or less, or null."
        at = f"{_PATH}.keep_every_hours"

        yield Problem(
            at,
            policy.keep_every_hours,
            rule,
            fix,
            against=f"{_PATH}.expire_days",
            code="milestones-exceed-expiry",
        )


def room(spec: StackSpec) -> Iterator[Problem]:
    """The shared file system has space for the kept checkpoints of one run and the one being written."""
    policy, shared = spec.data.checkpoints, spec.data.shared_fs
    size = policy.size_gb
    if size is None or shared is None:
        return
    there = shared.capacity_gib * _GB_PER_GIB
    if (policy.keep_last + 1) * size > there:
        rule = (
            f"{policy.keep_last} x {size:,.0f} GB and the one being written are "
            f"{(policy.keep_last + 1) * size:,.0f} GB, and the file system has {there:,.0f} GB"
        )
        most = int(there // size) - 1
        lower = f"Set {most} or less" if most > 0 else "No number fits; leave out data.shared_fs"
        fix = f"{lower}, or raise data.shared_fs.capacity_gib."

        yield Problem(
            f"{_PATH}.keep_last",
            policy.keep_last,
            rule,
            fix,
            against="data.shared_fs.capacity_gib",
            code="file-system-too-small",
        )


def classes(spec: StackSpec) -> Iterator[Problem]:
    """Transitions to cheaper storage classes are accepted by the cloud, and save cost."""
    policy = spec.data.checkpoints
    catalog = CATALOGS.get(spec.cloud)
    if catalog is not None:
        yield from move_problems(
            Move(f"{_PATH}.cool_after_days", policy.cool_after_days, catalog.cool),
            Move(f"{_PATH}.cold_after_days", policy.cold_after_days, catalog.cold),
            f"{_PATH}.expire_days",
            policy.expire_days,
        )


def deletions(spec: StackSpec) -> Iterator[Problem]:
    """Checkpoints that runs delete are not moved to a cheaper class before."""
    policy = spec.data.checkpoints
    if policy.in_bucket != "kept":
        return
    for name, days in (("cool", policy.cool_after_days), ("cold", policy.cold_after_days)):
        if days is not None:
            rule = "a run deletes its checkpoints earlier; cheaper classes need `in_bucket: all`"
            at = f"{_PATH}.{name}_after_days"
            fix = "Set null."
            yield Problem(at, days, rule, fix, against=f"{_PATH}.in_bucket", code="moved-before-deleted")


RULES: tuple[Rule, ...] = (interval, milestones, room, classes, deletions)
