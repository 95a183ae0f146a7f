"""Waves of a deployment: canaries first, production last, each wave after the one before."""

from collections.abc import Iterator, Sequence

from infra.errors import Problem, UserError
from trainstack.fleet.stacks import FleetStack

CANARY = "canary"
"""Tag of clients whose stacks come first."""


def sizes(text: str) -> tuple[int, ...]:
    """Sizes of the first waves, such as `1,5`; the last wave has the rest. Raises UserError."""
    try:
        found = tuple(int(one) for one in text.split(","))
    except ValueError:
        found = ()
    if not found or any(one < 1 for one in found):
        rule, fix = "must be sizes of the first waves", "Such as 1 or 1,5,20."
        raise UserError([Problem("--waves", text, rule, fix, code="waves-invalid")])
    return found


def waves(stacks: Sequence[FleetStack], first: Sequence[int]) -> list[list[FleetStack]]:
    """Stacks in waves: production in waves of its own, of the same sizes, after all others."""
    ordered = sorted(stacks, key=lambda one: CANARY not in one.client.tags)
    groups = ([one for one in ordered if one.is_production is kind] for kind in (False, True))
    return [wave for group in groups for wave in _split(group, first)]


def _split(stacks: Sequence[FleetStack], first: Sequence[int]) -> Iterator[list[FleetStack]]:
    rest = list(stacks)
    for size in first:
        if rest:
            yield rest[:size]
        rest = rest[size:]
    if rest:
        yield rest
