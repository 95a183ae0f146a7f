"""A plan as text for reviewers: ended nodes, and replaced, deleted, updated and created resources."""

import re
from collections.abc import Iterator, Sequence

from infra.engine.plan import PlannedStep
from trainstack.plans.drains import drains

_INDEX = re.compile(r"\[\d+\]")
_ORDER = ("replace", "delete", "update", "create")
_TAGS = ("tags", "tagsAll", "effectiveLabels")


def text(title: str, steps: Sequence[PlannedStep]) -> str:
    """The content of a golden file."""
    ended = sorted(drains(steps)) or ["none"]
    lines = [title, "", "nodes that end", *(f"  {line}" for line in ended)]
    for operation in _ORDER:
        listed = [*_listed([step for step in steps if step.operation == operation])]
        if listed:
            lines += ["", operation, *(f"  {line}" for line in listed)]
    return "\n".join(lines) + "\n"


def _listed(steps: Sequence[PlannedStep]) -> Iterator[str]:
    retagged = [step for step in steps if step.operation == "update" and _of_tags(step)]
    if retagged:
        yield f"tags alone: {len(retagged)} resources"
    others = [step for step in steps if step not in retagged]
    for step in sorted(others, key=lambda step: (step.type, step.name)):
        kind = "Provider" if step.type.startswith("pulumi:providers:") else step.type.rpartition(":")[2]
        changed = sorted({_INDEX.sub("[]", path) for path in step.changed})
        paths = f": {', '.join(changed)}" if step.operation in ("update", "replace") and changed else ""
        yield f"{kind} {step.name.removeprefix('dev-')}{paths}"


def _of_tags(step: PlannedStep) -> bool:
    return bool(step.changed) and all(path.split(".")[0].split("[")[0] in _TAGS for path in step.changed)
