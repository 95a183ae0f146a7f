"""The script that loads accounts on a login node: installs the scripts, and runs them as root (pure)."""

from typing import Final

PROFILE: Final = "/etc/profile.d/slurm.sh"
FOLDER: Final = "/opt/trainstack/slurm"
"""Folder of the scripts on the login node."""


def loading_lines(*, accounts: str, validation: str, add_user: str) -> list[str]:
    """Lines of bash. `accounts` may run again; in `validation`, `$user` is the user of validations."""
    folder = f"${{TRAINSTACK_SCRIPTS:-{FOLDER}}}"
    return [
        "#!/bin/bash",
        "set -eu",
        f"[ ! -r {PROFILE} ] || . {PROFILE}",
        f"mkdir -p {folder}",
        *_file(f"{folder}/accounts.sh", accounts),
        *_file(f"{folder}/add-user.sh", add_user),
        *_file(f"{folder}/validation.sh", validation),
        f"for attempt in $(seq 60); do code=0; {folder}/accounts.sh || code=$?",
        # slurmdbd knows GPUs once slurmctld has registered.
        '  [ "$code" = 3 ] || break; sleep 5; done; [ "$code" = 0 ] || exit "$code"',
        f"user=${{TRAINSTACK_USER:-trainstack}} {folder}/validation.sh",
    ]


def _file(path: str, text: str) -> list[str]:
    return [f"cat > {path} <<'TRAINSTACK'", *text.splitlines(), "TRAINSTACK", f"chmod 755 {path}"]
