"""Copy of a stack file for a rehearsal; the original is never changed.

A real stack file names a cloud key that a rehearsal must not need, and the engine writes the salt of its own
secrets provider into the file it is given. So the engine gets a copy below the home, which is renewed
whenever the original is newer: by `workspace`, and by the `pulumi` launcher.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from infra.errors import Problem, UserError
from infra.places import PACKAGES

_PROVIDER_KEYS = ("secretsprovider", "encryptedkey", "encryptionsalt")
_LAUNCHER = """#!/bin/sh
# Renews the rehearsal's copy of the stack file when the real one is newer, then runs the Pulumi CLI.
if [ -n "$TRAINSTACK_STACK_FILE" ] && [ "$TRAINSTACK_STACK_FILE" -nt "$PULUMI_OPTION_CONFIG_FILE" ]; then
  {python} -P -c {renew} {root} "$TRAINSTACK_STACK_FILE" "$PULUMI_OPTION_CONFIG_FILE" || exit 1
fi
exec {pulumi} "$@"
"""
# The working directory is a project's folder: with `python -m`, a folder `rehearsal` in it would be imported.
_RENEW = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from rehearsal.projects.stack_file import main; main(*sys.argv[1:])"
)


def renew(source: Path | None, copy: Path) -> tuple[str, ...]:
    """Copy the settings of the original, and keep those that were set in the rehearsal only.

    Secrets that were encrypted elsewhere cannot be read here: they are omitted, and their names returned,
    unless the rehearsal has a value of its own. Raises UserError when a file cannot be read.
    """
    kept = load(copy) if copy.exists() else {}
    snapshot = copy.with_suffix(".source")
    before = load(snapshot) if snapshot.exists() else {}
    given = load(source) if source else {}
    secrets = {key for key, value in (given.get("config") or {}).items() if _is_encrypted(value)}
    plain = {key: value for key, value in (given.get("config") or {}).items() if key not in secrets}
    own = {
        key: value
        for key, value in (kept.get("config") or {}).items()
        if _is_own(key, value, before.get("config") or {}, plain, secrets)
    }
    provider = {key: kept[key] for key in _PROVIDER_KEYS if key in kept}
    others = {key: value for key, value in given.items() if key not in (*_PROVIDER_KEYS, "config")}
    write(copy, {**provider, **others, "config": {**plain, **own}})
    if source:
        shutil.copyfile(source, snapshot)
    else:
        snapshot.unlink(missing_ok=True)
    return tuple(sorted(secrets - own.keys()))


def load(file: Path) -> dict[str, Any]:
    """Read a YAML file with a mapping. Raises UserError."""
    try:
        content = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
    except (OSError, YAMLError, UnicodeDecodeError) as error:
        problem = Problem(str(file), None, "cannot be read", f"{error}", code="stack-file-unreadable")
        raise UserError([problem]) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        rule, fix = "is not a mapping", "Write `key: value` lines."
        raise UserError([Problem(str(file), None, rule, fix, code="stack-file-not-mapping")])
    return content


def write(file: Path, content: Mapping[str, Any]) -> None:
    """Write a YAML file, readable by its owner only."""
    draft = file.with_suffix(f".{os.getpid()}")  # several stacks of one project may begin at once
    with draft.open("w", encoding="utf-8") as out:
        YAML(typ="safe").dump(dict(content), out)
    draft.chmod(0o600)
    draft.replace(file)


def write_launcher(folder: Path, pulumi: str) -> None:
    """Write the launcher `pulumi` into a folder that is first on PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    launcher = folder / "pulumi"
    values = {"python": sys.executable, "renew": _RENEW, "root": PACKAGES, "pulumi": pulumi}
    launcher.write_text(_LAUNCHER.format(**{name: shlex.quote(str(one)) for name, one in values.items()}))
    launcher.chmod(0o755)


def _is_own(
    key: str, value: Any, before: Mapping[str, Any], plain: Mapping[str, Any], secrets: set[str]
) -> bool:
    """Return whether a setting was made in the rehearsal, not copied (`before`) from the original."""
    if key in plain:
        return bool(before.get(key) == plain[key] and value != plain[key])
    return key in secrets or key not in before


def _is_encrypted(value: Any) -> bool:
    if isinstance(value, dict):
        return set(value) == {"secure"} or any(_is_encrypted(item) for item in value.values())
    return isinstance(value, list) and any(_is_encrypted(item) for item in value)


def main(source: str, copy: str) -> None:
    """Renew a copy; errors are shown without a traceback."""
    try:
        renew(Path(source), Path(copy))
    except UserError as error:
        sys.exit(str(error))
