"""Which home a rehearsal has: one for the stacks of this checkout, one for every other project."""

import os
from pathlib import Path

from infra.engine.install import HOME
from rehearsal.client import Rehearsal
from rehearsal.control import HOME_VARIABLE
from rehearsal.projects.project import Project


def of_checkout() -> Rehearsal:
    """The rehearsal of this checkout, or the one that TRAINSTACK_REHEARSAL_HOME names."""
    return _named() or Rehearsal(HOME / "rehearsal")


def of_project(project: Project) -> Rehearsal:
    """The rehearsal of a project, or the one that TRAINSTACK_REHEARSAL_HOME names; several may share it."""
    return _named() or Rehearsal(HOME / "rehearsals" / project.name)


def _named() -> Rehearsal | None:
    home = os.environ.get(HOME_VARIABLE)
    return Rehearsal(Path(home)) if home else None
