"""Verdicts of the source of a Terraform provider: ForceNew, Optional, Computed and Default of its schemas.

A checkout of hashicorp/terraform-provider-aws or of a fork of it. Properties that a function compares or
replaces on a condition are left out.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.provider_source import Attribute, all_types, of_source

_DEEPEST = 2
_UNJUDGED = ("tags", "tags_all", "timeouts", "region")


def verdicts(checkout: Path) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """(the provider's type, steps of a property, kind of change -> verdict)."""
    for name, schema in all_types(checkout, package="aws").items():
        if schema:
            source = of_source(schema)
            unsure = {path.partition(".")[0] for path in (*source.may, *source.lower)}
            yield from ((name, steps, kinds) for steps, kinds in _of(source.attributes, [], unsure))


def _of(
    attributes: Mapping[str, Attribute], above: list[str], unsure: set[str]
) -> Iterator[tuple[list[str], dict[str, str]]]:
    for name, one in attributes.items():
        if not one.given or one.alike or one.unknown or one.may or name in _UNJUDGED:
            continue
        if above or name not in unsure:
            steps = [*above, name]
            if one.inner:
                yield from _of(one.inner, steps, set()) if len(steps) < _DEEPEST else ()
            else:
                yield steps, dict(_kinds(one))


def _kinds(one: Attribute) -> Iterator[tuple[str, str]]:
    effect = "replace" if one.replaces else "update"
    yield "changed", effect
    if one.required:
        return
    if one.computed:
        yield from (("left out", "none"), ("stated", "none"))
        return
    # The samples of `tests.rehearsal.differences.pairs`: the first of two values.
    same = "none" if one.default is True or one.default == 1 else effect
    yield from (("left out", same), ("added", same))
