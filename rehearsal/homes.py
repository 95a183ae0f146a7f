"""Which home a rehearsal has: one for the stacks of this checkout, one for every other project.

State is kept by the name of a project, and many are called `infra`: so a home notes the folder of each of its
projects, and no other project of the same name gets to its state.
"""

import hashlib
import os
from pathlib import Path

from infra.engine.install import HOME
from infra.errors import Problem, UserError
from rehearsal.client import Rehearsal
from rehearsal.control import HOME_VARIABLE
from rehearsal.projects.project import PulumiProject
from rehearsal.projects.stack_file import load


def of_checkout() -> Rehearsal:
    """The rehearsal of this checkout, or the one that TRAINSTACK_REHEARSAL_HOME names."""
    return _named() or Rehearsal(HOME / "rehearsal")


def of_project(project: PulumiProject) -> Rehearsal:
    """The rehearsal of a project, or the one that TRAINSTACK_REHEARSAL_HOME names; several may share it."""
    named, homes = _named(), HOME / "rehearsals"
    if named:
        return named
    if _folder_of(project.name, homes / project.name) == project.folder:
        return Rehearsal(homes / project.name)  # made when homes were named after the project only
    digest = hashlib.sha256(os.fsencode(project.folder)).hexdigest()[:10]
    return Rehearsal(homes / f"{project.name}-{digest}")


def claim(project: PulumiProject, rehearsal: Rehearsal) -> tuple[Path, list[str]]:
    """Where the engine works on a project, from now on for its folder only; and what the user should know.

    Raises UserError when another project of this name has it; one that is not there any more has moved.
    """
    folder = _workspace(project.name, rehearsal.home)
    owner = _folder_of(project.name, rehearsal.home)
    notes = []
    if owner is not None and owner != project.folder:
        if owner.is_dir():
            rule = f"{rehearsal.home} holds the state of another project named {project.name}, of {owner}"
            fix = f"Name another home in {HOME_VARIABLE}, or rename one of the projects."
            raise UserError([Problem("DIR", str(project.folder), rule, fix)])
        notes.append(f"goes on with the rehearsal of {owner}, from which the project seems to have moved")
    elif owner is not None and not (folder / "origin").exists():
        notes.append(f"goes on with the rehearsal in {rehearsal.home}, which is this folder's from now on")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "origin").write_bytes(os.fsencode(project.folder))
    return folder, notes


def _workspace(name: str, home: Path) -> Path:
    return home / "projects" / name


def _folder_of(name: str, home: Path) -> Path | None:
    """The folder of the project with this name in a home; None when the home has none."""
    workspace = _workspace(name, home)
    if (workspace / "origin").exists():
        return Path(os.fsdecode((workspace / "origin").read_bytes()))
    if not (workspace / "Pulumi.yaml").exists():
        return None
    # Before it was kept: the program lies in the project's folder, or is it.
    program = Path(str(load(workspace / "Pulumi.yaml").get("main")))
    return next(
        (folder for folder in (program, *program.parents) if (folder / "Pulumi.yaml").exists()), program
    )


def _named() -> Rehearsal | None:
    home = os.environ.get(HOME_VARIABLE)
    return Rehearsal(Path(home)) if home else None
