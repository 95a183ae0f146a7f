"""Files of a folder that are written all or none, and never over others."""

from collections.abc import Mapping
from pathlib import Path

from infra.errors import Problem, UserError


def write(texts: Mapping[str, str], folder: Path) -> None:
    """Write files into a folder, made if it does not exist; all or none.

    Raises UserError, before anything is written, where one exists.
    """
    check_new(texts, folder)
    made, written = list[Path](), list[Path]()
    try:
        for path in (folder / name for name in texts):
            missing = [one for one in path.parents if not one.exists()]
            for above in reversed(missing):
                above.mkdir()
                made.append(above)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                written.append(path)
                file.write(texts[path.relative_to(folder).as_posix()])
    except OSError as error:
        for path in written:
            path.unlink()
        for path in reversed(made):
            path.rmdir()
        fix = "Make room, or choose a folder that you can write to."
        problem = Problem(
            "CLIENT", str(folder), f"cannot be written: {error}", fix, code="client-not-written"
        )
        raise UserError([problem]) from error


def check_new(texts: Mapping[str, str], folder: Path) -> None:
    """Raise UserError where one of the files exists already, or the folder is something else."""
    places = {*texts, *(str(above) for name in texts for above in Path(name).parents if above != Path())}
    taken = sorted(name for name in places if _is_taken(folder / name, is_file=name in texts))
    if taken or (folder.exists() and not folder.is_dir()):
        named = ", ".join(dict.fromkeys(Path(name).parts[0] for name in taken))
        rule = f"{folder}/ has {named}" if taken else f"{folder} is not a folder"
        fix = (
            "Choose another CLIENT, or move these files away. docs/how-to/clients.md lists the places of a "
            "further environment; `trainstack update` renews the files of a client."
        )
        rule = f"{rule}; existing files are not overwritten"
        raise UserError([Problem("CLIENT", folder.name, rule, fix, code="client-file-exists")])


def _is_taken(path: Path, *, is_file: bool) -> bool:
    """A folder of ours may exist, as long as it is one."""
    return path.is_symlink() or (path.exists() and (is_file or not path.is_dir()))
