"""Workspace of a rehearsed stack, below the home: the engine changes only copies.

The engine writes a salt or a setting into the stack file that it gets. It therefore gets a copy: in
`<home>/stacks` for the stacks of this checkout, in `<home>/projects/<name>` for those of any other project.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.client import Rehearsal
from rehearsal.control import HOME_VARIABLE
from rehearsal.isolation import without_credentials
from rehearsal.projects import dependencies, homes, stack_file
from rehearsal.projects.project import PulumiProject

# Dynamic providers are run by the first `python3` on PATH (pulumi-resource-pulumi-python of the CLI), which
# must have the SDK although no environment is activated.
_PYTHON = Path(sys.executable).parent


@dataclass(frozen=True)
class Workspace:
    """A stack that is ready for the engine; `notes` are for its user."""

    folder: Path
    stack: str
    notes: Sequence[str]
    environment: Mapping[str, str]

    @property
    def variables(self) -> dict[str, str]:
        """All variables of a process in it: `environment` and other harmless ones."""
        return {**without_credentials(os.environ), **self.environment}


def of_project(project: PulumiProject, stack: str, rehearsal: Rehearsal, pulumi: str) -> Workspace:
    """A stack of any project; the engine works on copies, whose `main` leads to the program.

    Raises UserError when the home is another project's, RuntimeError with the message of the CLI when
    the stack cannot be made.
    """
    folder, notes = homes.claim(project, rehearsal)
    environment = {
        **rehearsal.environment(),
        "KUBECONFIG": str(rehearsal.kubeconfig()),
        "PATH": _path_from(_PYTHON, Path(pulumi).parent),
        "PULUMI_STACK": stack,
        # Compiled modules stay out of the project, and homes share them: an SDK takes 7 s to compile.
        "PYTHONPYCACHEPREFIX": str(Path(sys.prefix) / "pycache"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    folders = [str(one) for one in dependencies.local_packages(project.folder)]
    if folders:
        described = dependencies.describe(folders, folder / "packages")
        inherited = [path for path in (os.environ.get("PYTHONPATH"),) if path]
        environment["PYTHONPATH"] = os.pathsep.join([*folders, str(described), *inherited])
    dropped = {"main", "stackConfigDir", "config_dir", "backend", "runtime"}
    settings = {key: value for key, value in project.settings.items() if key not in dropped}
    # No `virtualenv` and no tool chain: a program in Python runs with the SDKs that the rehearsal knows.
    settings = {**settings, "runtime": project.language, "main": str(project.entry)}
    if "packages" in settings:
        settings["packages"] = {
            name: _located(source, project.folder) for name, source in settings["packages"].items()
        }
    settings["plugins"] = _plugins(settings.get("plugins"), project.folder, rehearsal)
    unreadable = _prepare(folder, settings, project, pulumi, environment)
    return Workspace(folder, stack, [*notes, *unreadable], environment)


def of_checkout(project: PulumiProject, stack: str, rehearsal: Rehearsal, pulumi: str) -> Workspace:
    """A stack of this checkout: the engine works in it, but on a copy of the stack file.

    Its environment suits plain `pulumi` too: a launcher of that name renews the copy.
    Raises RuntimeError with the message of the CLI when the stack cannot be made.
    """
    folder, launchers = rehearsal.home / "stacks", rehearsal.home / "bin"
    environment = {**rehearsal.environment(), "PATH": _path_from(launchers, _PYTHON), "PULUMI_STACK": stack}
    settings = {"name": project.name, "runtime": "python"}
    unreadable = _prepare(folder, settings, project, pulumi, environment)
    stack_file.write_launcher(launchers, pulumi)
    environment |= {
        "PULUMI_OPTION_CONFIG_FILE": str(folder / f"Pulumi.{stack}.yaml"),
        "TRAINSTACK_STACK_FILE": str(project.stacks()[stack]),
    }
    return Workspace(project.folder, stack, unreadable, environment)


def _located(source: Any, folder: Path) -> Any:
    """The source of a package, where a folder in the project's is an absolute path."""
    if isinstance(source, dict) and "source" in source:
        return {**source, "source": _located(source["source"], folder)}
    return str((folder / source).resolve()) if isinstance(source, str) and source.startswith(".") else source


def _plugins(own: Any, folder: Path, rehearsal: Rehearsal) -> dict[str, Any]:
    """The plugins of a project, where the emulated packages answer for each version that a program pins.

    A plugin of a project without a version is taken for every version (`getPluginInfoAndPath` in
    sdk/go/common/workspace/plugins.go of Pulumi 3.259.0); installed ones only for their own.
    """
    emulated = rehearsal.plugins()
    found = dict(own) if isinstance(own, dict) else {}
    for kind, rows in found.items():
        found[kind] = [
            {**row, "path": str((folder / str(row.get("path"))).resolve())}
            for row in rows or ()
            if kind != "providers" or row.get("name") not in emulated
        ]
    ours = [{"name": name, "path": str(path)} for name, path in emulated.items()]
    return {**found, "providers": [*found.get("providers", ()), *ours]}


def _path_from(*first: Path) -> str:
    return os.pathsep.join([*map(str, first), os.environ.get("PATH", os.defpath)])


def _prepare(
    folder: Path,
    settings: Mapping[str, Any],
    project: PulumiProject,
    pulumi: str,
    environment: Mapping[str, str],
) -> list[str]:
    """Write or renew the copies, and make the stack in the rehearsal's backend; returns notes."""
    stack, home = environment["PULUMI_STACK"], Path(environment[HOME_VARIABLE])
    folder.mkdir(parents=True, exist_ok=True)
    stack_file.write(folder / "Pulumi.yaml", settings)
    unreadable = stack_file.renew(project.stacks().get(stack), folder / f"Pulumi.{stack}.yaml")
    checkpoint = home / "state" / ".pulumi" / "stacks" / project.name / f"{stack}.json"
    if not checkpoint.exists():
        command = [pulumi, "stack", "init", stack, "--non-interactive", "--no-select"]
        variables = {**without_credentials(os.environ), **environment}
        made = subprocess.run(command, cwd=folder, env=variables, check=False, capture_output=True, text=True)
        if made.returncode and not checkpoint.exists():  # another command may have created it meanwhile
            raise RuntimeError(f"the rehearsal's stack cannot be made: {made.stderr.strip()}")
    return [
        f"secret {key} of the stack file is encrypted elsewhere; the rehearsal has no value for it"
        for key in unreadable
    ]
