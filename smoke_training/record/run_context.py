"""Plug-in of the mlflow package: tags of the job in every run that its script begins.

Scripts and loggers of libraries begin runs of their own. mlflow asks context providers for their tags; it
finds this one in the zip (`launchers.bundle.PLUGIN`). Source: mlflow 3.17, tracking/context.
"""

import os

_NAMES = ("run", "stack", "owner", "team", "task", "dataset", "code_version")
_PLAIN = frozenset({"owner", "team", "task", "dataset"})


class JobContext:
    """Tags with the names that the job's own run has."""

    def in_context(self) -> bool:
        """See `mlflow.tracking.context.abstract_context.RunContextProvider`: only in a job."""
        return "TRAINSTACK_RUN" in os.environ

    def tags(self) -> dict[str, str]:
        """See `mlflow.tracking.context.abstract_context.RunContextProvider`."""
        found = {name: os.environ.get(f"TRAINSTACK_{name.upper()}", "") for name in _NAMES}
        return {
            name if name in _PLAIN else f"trainstack.{name}": value for name, value in found.items() if value
        }
