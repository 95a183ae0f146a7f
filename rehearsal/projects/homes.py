"""Homes of rehearsals: one for the stacks of this checkout or client's folder, one for every other project.

State is kept by project name, and many projects are called `infra`: a home records the folder of each of its
projects, and refuses another project of the same name.
"""

import hashlib
import os
import sys
from pathlib import Path

from infra.errors import Problem, UserError
from infra.places import STATE as HOME
from rehearsal.client import Rehearsal
from rehearsal.control import HOME_VARIABLE
from rehearsal.projects.project import PulumiProject
from rehearsal.projects.stack_file import load


def of_checkout() -> Rehearsal:
    """The rehearsal of this folder's stacks, or the one that TRAINSTACK_REHEARSAL_HOME names."""
    require_linux("rehearsal")
    return _named() or Rehearsal(HOME / "rehearsal")


def of_project(project: PulumiProject) -> Rehearsal:
    """The rehearsal of a project, or the one that TRAINSTACK_REHEARSAL_HOME names; several may share it."""
    require_linux("rehearsal")
    named, homes = _named(), HOME / "rehearsals"
    if named:
        return named
    if _folder_of(project.name, homes / project.name) == project.folder:
        return Rehearsal(homes / project.name)  # made when homes were named after the project only
    digest = hashlib.sha256(os.fsencode(project.folder)).hexdigest()[:10]
    return Rehearsal(homes / f"{project.name}-{digest}")


def require_linux(what: str) -> None:
    """Raise UserError elsewhere: processes of a rehearsal are started and ended by means of Linux."""
    if sys.platform != "linux":
        rule = f"needs Linux; this is {sys.platform}"
        fix = "Run it on Linux, such as in a container. Commands without rehearsals work here."
        raise UserError([Problem(what, None, rule, fix, code="rehearsal-needs-linux")])


def claim(project: PulumiProject, rehearsal: Rehearsal) -> tuple[Path, list[str]]:
    """Reserve the workspace of a project for its folder; returns the workspace and notes for the user.

    Raises UserError when another project of this name has it; a project whose folder is gone has moved.
    """
    folder = _workspace(project.name, rehearsal.home)
    owner = _folder_of(project.name, rehearsal.home)
    notes = []
    if owner is not None and owner != project.folder:
        if owner.is_dir():
            rule = f"{rehearsal.home} holds the state of another project named {project.name}, of {owner}"
            fix = f"Name another home in {HOME_VARIABLE}, or rename one of the projects."
            raise UserError([Problem("DIR", str(project.folder), rule, fix, code="rehearsal-home-taken")])
        notes.append(f"continues the rehearsal of {owner}, from which the project seems to have moved")
    elif owner is not None and not (folder / "origin").exists():
        notes.append(f"continues the rehearsal in {rehearsal.home}, which is reserved for this folder now")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "origin").write_bytes(os.fsencode(project.folder))
    return folder, notes


def _workspace(name: str, home: Path) -> Path:
    return home / "projects" / name


def _folder_of(name: str, home: Path) -> Path | None:
    workspace = _workspace(name, home)
    if (workspace / "origin").exists():
        return Path(os.fsdecode((workspace / "origin").read_bytes()))
    if not (workspace / "Pulumi.yaml").exists():
        return None
    # A home without `origin` is older: the program lies in the project's folder, or is it.
    program = Path(str(load(workspace / "Pulumi.yaml").get("main")))
    return next(
        (folder for folder in (program, *program.parents) if (folder / "Pulumi.yaml").exists()), program
    )


def _named() -> Rehearsal | None:
    home = os.environ.get(HOME_VARIABLE)
    return Rehearsal(Path(home)) if home else None
