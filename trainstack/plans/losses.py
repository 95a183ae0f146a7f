"""Resources with user data that a plan deletes, shrinks, leaves in the cloud or keeps in the stack."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from infra.engine.plan import PlannedStep
from infra.places import located
from infra.quantity import parse

_EXPORT = located("export them first (docs/how-to/growing.md)")
DATA = {
    "aws:s3/bucket:Bucket": "its objects",
    "aws:efs/fileSystem:FileSystem": "its files",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "files that are only on it",
    "aws:rds/cluster:Cluster": f"runs of MLflow: {_EXPORT}",
    "aws:sagemaker/mlflowApp:MlflowApp": f"runs of MLflow: {_EXPORT}",
    "aws:sagemaker/domain:Domain": "disks of notebooks, and the home file system unless it is retained",
    "aws:kms/key:Key": "all data that it encrypts, after its waiting period",
    "gcp:storage/bucket:Bucket": "its objects",
    "gcp:filestore/instance:Instance": "its files",
    "gcp:lustre/instance:Instance": "files that are only on it",
    "gcp:sql/databaseInstance:DatabaseInstance": f"runs of MLflow: {_EXPORT}",
}
"""The data that is lost with a resource, by its type."""


def losses(steps: Iterable[PlannedStep]) -> Iterator[str]:
    """One line for each resource with data that is deleted or replaced."""
    for step in endangered(steps):
        why = f", because of {', '.join(step.changed)}" if step.operation == "replace" else ""
        yield f"{step.name} ({_kind(step.type)}) with {DATA[step.type]}{why}"


def retained(steps: Iterable[PlannedStep]) -> Iterator[str]:
    """One line for each resource with data that leaves the stack and stays in the cloud."""
    for step in _deletions(steps):
        if step.retained:
            yield f"{step.name} ({_kind(step.type)}) outside of the stack, billed until it is deleted"


def endangered(steps: Iterable[PlannedStep]) -> Iterator[PlannedStep]:
    """The steps that delete or replace a resource with data, and do not leave it in the cloud."""
    return (one for one in _deletions(steps) if not one.retained)


def _deletions(steps: Iterable[PlannedStep]) -> Iterator[PlannedStep]:
    return (one for one in steps if one.type in DATA and one.operation in ("delete", "replace"))


def shrinks(steps: Iterable[PlannedStep]) -> Iterator[str]:
    """One line for each file system that gets smaller."""
    for step in steps:
        if step.type != "gcp:filestore/instance:Instance" or step.operation != "update":
            continue
        before, after = (_gib(inputs) for inputs in (step.before, step.inputs))
        if after < before:
            yield (
                f"{step.name} from {before:g} to {after:g} GiB: its speed falls with its size, and Filestore"
                " refuses to shrink below what is used"
            )


def lowered(steps: Iterable[PlannedStep]) -> Iterator[str]:
    """One line for each limit of a team's objects that falls (docs/adr/0063)."""
    for step in steps:
        if step.type != "kubernetes:core/v1:ResourceQuota" or step.operation != "update":
            continue
        before, after = (
            (inputs.get("spec") or {}).get("hard") or {} for inputs in (step.before, step.inputs)
        )
        for key in sorted(after):
            # A limit of what has not ended (`pods`) takes the place of one of all that exist (`count/pods`).
            was = before.get(key, before.get(f"count/{key}"))
            if was is not None and parse(after[key]) < parse(was):
                yield (
                    f"{step.name}, {key} from {was} to {after[key]}: what exists stays, and above the"
                    " new limit nothing is created"
                )


def _gib(inputs: Mapping[str, Any]) -> float:
    return float((inputs.get("fileShares") or {}).get("capacityGb") or 0)


def keeps(kept: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The resources with data among those that stay, by type and name: one line for each kind."""
    by_kind: dict[str, list[str]] = {}
    for kind, name in kept:
        if kind in DATA:
            by_kind.setdefault(_kind(kind), []).append(name)
    for kind, names in sorted(by_kind.items()):
        yield f"{kind}: {', '.join(sorted(names))}"


def _kind(token: str) -> str:
    return token.rpartition(":")[2]
