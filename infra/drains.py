"""Which nodes a plan ends: those of node groups that are replaced, or that get another image or template."""

from collections.abc import Iterable, Iterator

from infra.engine.plan import Step

_GROUP = "aws:eks/nodeGroup:NodeGroup"
# What EKS puts into force by replacing every node of the group; all else it changes beside them.
# Source: Amazon EKS API Reference, UpdateNodegroupVersion and UpdateNodegroupConfig.
_REPLACES_NODES = ("version", "releaseVersion", "launchTemplate")


def drains(steps: Iterable[Step]) -> Iterator[str]:
    """One line for each node group whose nodes end, with how many at most, and why."""
    for step in steps:
        if step.type != _GROUP or step.operation == "create":
            continue
        why = [path for path in step.changed if path.split(".")[0] in _REPLACES_NODES]
        most = (step.inputs.get("scalingConfig") or {}).get("maxSize", "?")
        nodes = f"{step.name}: every node (up to {most})"
        if step.operation == "delete":
            yield f"{nodes} ends"
        elif step.operation == "replace":
            yield f"{nodes} ends: the group is replaced, because of {', '.join(step.changed)}"
        elif why:
            yield f"{nodes} is drained and replaced, {_pace(step)}, because of {', '.join(why)}"


def _pace(step: Step) -> str:
    update = step.inputs.get("updateConfig") or {}
    share = update.get("maxUnavailablePercentage")
    at_once = f"{share:g} % at a time" if share else f"{update.get('maxUnavailable', 1):g} at a time"
    minimal = update.get("updateStrategy") == "MINIMAL"
    return at_once + (", old ones before new ones" if minimal else ", new ones before old ones")
