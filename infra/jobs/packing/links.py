"""Symbolic links of a folder, by the files to which they lead."""

import os
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from infra.errors import Problem
from infra.jobs.packing.names import local, name_of, shown, text_of


def followed(
    folder: Path, path: str, files: Collection[str], folders: Collection[str], leave_out: str
) -> str | Problem:
    """The path below `folder` to which a link finally leads; a problem unless the run takes that, too."""
    link = local(folder, path)
    try:
        raw = name_of(link.readlink())
        target = os.path.realpath(link, strict=True)
    except OSError as error:
        fix = f"Remove it, or {leave_out}."
        rule = f"is a link that leads nowhere: {error.strerror}"
        return Problem(shown(path), None, rule, fix, code="link-broken")
    inside = text_of(os.path.relpath(target, os.path.realpath(folder)))
    if inside == ".." or inside.startswith("../"):
        fix = f"Replace it by a copy (cp -rL), choose the folder above and --script, or {leave_out}."
        rule = "points outside of the folder, which the job does not have"
        return Problem(shown(path), raw, rule, fix, code="link-leaves-folder")
    if inside in files or inside in folders or inside == ".":
        return inside
    fix = f"Include {shown(inside)}, or {leave_out} as well."
    return Problem(
        shown(path), raw, "points to a file that the run leaves out", fix, code="link-target-left-out"
    )


def relative(path: str, target: str) -> str:
    """The target of a link at `path`, relative to it; both are below the same folder."""
    return os.path.relpath(target, PurePosixPath(path).parent)
