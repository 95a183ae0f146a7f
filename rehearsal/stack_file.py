"""The stack file a rehearsal runs with: the real one, but with a secrets provider of the rehearsal's own.

A real stack file names a cloud key that a rehearsal must not need, and the engine writes the salt of its own
secrets provider into whichever file it is given. So a rehearsal works on a copy below its home, which the
`pulumi` launcher beside it renews whenever the real file is newer.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PROVIDER_KEYS = ("secretsprovider", "encryptedkey", "encryptionsalt")
_PROVIDER_LINE = re.compile(rf"^({'|'.join(PROVIDER_KEYS)}):.*\n?", re.MULTILINE)
_LAUNCHER = """#!/bin/sh
# Renews the rehearsal's copy of the stack file when the real one is newer, then runs the Pulumi CLI.
if [ -n "$TRAINSTACK_STACK_FILE" ] && [ "$TRAINSTACK_STACK_FILE" -nt "$PULUMI_OPTION_CONFIG_FILE" ]; then
  "{python}" -m rehearsal.stack_file "$TRAINSTACK_STACK_FILE" "$PULUMI_OPTION_CONFIG_FILE" || exit 1
fi
exec "{pulumi}" "$@"
"""


def renew(source: Path, copy: Path) -> None:
    """Write the copy anew, keeping the salt it has."""
    text = _PROVIDER_LINE.sub("", source.read_text(encoding="utf-8"))
    kept = _PROVIDER_LINE.search(copy.read_text(encoding="utf-8")) if copy.exists() else None
    draft = copy.with_suffix(".tmp")
    draft.write_text(f"{text.rstrip()}\n{kept.group(0) if kept else ''}", encoding="utf-8")
    draft.chmod(0o600)
    draft.replace(copy)


def ensure(stack: str, project: Path, home: Path, pulumi: str, environment: Mapping[str, str]) -> Path:
    """Make the stack in the rehearsal's backend, and its copy of the stack file; both only once.

    Raises RuntimeError with the CLI's words when the stack cannot be made.
    """
    workspace = home / "stacks"
    workspace.mkdir(parents=True, exist_ok=True)
    copy = workspace / f"Pulumi.{stack}.yaml"
    if not copy.exists():
        name = re.search(r"^name:\s*(\S+)", (project / "Pulumi.yaml").read_text(), re.MULTILINE)
        assert name, "Pulumi.yaml names its project"
        (workspace / "Pulumi.yaml").write_text(f"name: {name.group(1)}\nruntime: python\n")
        command = [pulumi, "stack", "init", stack, "--non-interactive", "--no-select"]
        made = subprocess.run(
            command, cwd=workspace, env=dict(environment), check=False, capture_output=True, text=True
        )
        if made.returncode:
            raise RuntimeError(f"the rehearsal's stack cannot be made: {made.stderr.strip()}")
    renew(project / "stacks" / "config" / f"Pulumi.{stack}.yaml", copy)
    return copy


def write_launcher(folder: Path, pulumi: str) -> None:
    """Put the launcher `pulumi` into a folder that comes first on PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    launcher = folder / "pulumi"
    launcher.write_text(_LAUNCHER.format(python=sys.executable, pulumi=pulumi))
    launcher.chmod(0o755)


if __name__ == "__main__":
    renew(Path(sys.argv[1]), Path(sys.argv[2]))
