"""Objects of a stack's state in a bucket of Pulumi."""

from typing import Final

META: Final = ".pulumi/meta.yaml"
"""The version of the layout, written once for all stacks (pulumi pkg/backend/diy/meta.go v3.259)."""


def prefixes(project: str, stack: str) -> tuple[str, ...]:
    """Beginnings of the names of all objects that belong to one stack.

    Names of stacks have no periods (`infra.stackspec.model.Name`), so that no other stack has its files.
    Sources: pulumi pkg/backend/diy/store.go, stack_tags.go and lock.go v3.259.
    """
    return (
        f".pulumi/stacks/{project}/{stack}.",
        f".pulumi/history/{project}/{stack}/",
        f".pulumi/backups/{project}/{stack}/",
        locks(project, stack),
    )


def locks(project: str, stack: str) -> str:
    """Beginning of the names of a stack's locks."""
    return f".pulumi/locks/organization/{project}/{stack}/"
