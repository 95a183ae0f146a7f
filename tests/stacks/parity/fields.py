"""Every field of the spec of a medium stack, by a path such as `layout.pools[].disk_gib`."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.stack import StackSpec
from infra.stackspec.unions import arms, bare, model_or_none

CLOUDS: dict[str, type[BaseModel]] = {"aws": AwsSpec, "gcp": GcpSpec}
# What the settings of a stack file choose, as a stack of another profile or cloud is another stack.
CHOSEN = ("layout.profile", "on.cloud")


def fields(cloud: str) -> set[str]:
    """The fields that a stack file on a cloud may set.

    `[]` is an item of a list, `{}` a value of a mapping, `=` an arm of a union: `purchase=reserved.id`. What
    may be null has a path of its own beside those of its fields; of what a union chooses, the kind has none.
    """
    return {path for path in _below(StackSpec, "", cloud) if path not in CHOSEN}


def _below(model: type[BaseModel], path: str, cloud: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        at = f"{path}.{name}" if path else name
        if at == "layout":
            yield from _below(ClusterLayout, at, cloud)
        elif at == "on":
            yield from _below(CLOUDS[cloud], at, cloud)
        elif choices := arms(field):
            yield from _of_union(choices, str(field.discriminator), at, cloud)
        else:
            yield from _of(field.annotation, at, cloud)


def _of_union(choices: Mapping[str, type[BaseModel]], kind: str, at: str, cloud: str) -> Iterator[str]:
    """The arms, and their fields apart from the one that names the arm."""
    for tag, arm in choices.items():
        yield f"{at}={tag}"
        yield from (each for each in _below(arm, f"{at}={tag}", cloud) if not each.endswith(f".{kind}"))


def _of(annotation: Any, at: str, cloud: str) -> Iterator[str]:
    kind = bare(annotation)
    if model := model_or_none(kind):
        if kind is not annotation:
            yield at
        yield from _below(model, at, cloud)
        return
    items, ending = get_args(kind), {tuple: "[]", dict: "{}"}.get(get_origin(kind) or kind, "")
    item = model_or_none(items[-1 if ending == "{}" else 0]) if items and ending else None
    if item is None:
        yield at
    else:
        yield from _below(item, f"{at}{ending}", cloud)
