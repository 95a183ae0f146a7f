"""The engine with the unmodified provider, where it is installed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pulumi import automation

from infra.engine import install

PROVIDER = "pulumi-resource-kubernetes"
needs_provider = pytest.mark.skipif(
    shutil.which(PROVIDER) is None, reason=f"the real provider, {PROVIDER}, is not on PATH"
)


def stacks(folder: Path) -> Callable[[Callable[[], None]], automation.Stack]:
    """A stack whose program may be exchanged between updates, with its state below a folder."""
    folder.mkdir()
    engine = install.require()
    options = automation.LocalWorkspaceOptions(
        env_vars={
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_HOME": str(folder / "pulumi"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PATH": f"{engine.folder}{os.pathsep}{os.environ['PATH']}",
        },
        project_settings=automation.ProjectSettings(
            name="real", runtime="python", backend=automation.ProjectBackend(url=folder.as_uri())
        ),
        pulumi_command=automation.PulumiCommand(root=str(Path(engine.path).parents[1])),
    )

    def select(program: Callable[[], None]) -> automation.Stack:
        return automation.create_or_select_stack("dev", project_name="real", program=program, opts=options)

    return select
