"""Start of a node: file systems, scripts of Slurm, and credentials of the instance for root alone. Pure."""

import base64
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from infra.slurm import metadata, tracking

FOLDER: Final = "/opt/trainstack/slurm"
"""Folder of prolog.sh, epilog.sh and health.sh on every node."""
HOME: Final = "/home"
FAST: Final = "/fsx"


MOST_BYTES: Final = 16 * 1024
"""Of user data before its encoding (EC2 User Guide, "Run commands at launch")."""


def user_data(
    files: Mapping[str, str],
    *,
    homes: str | None,
    lustre: tuple[str, str] | None,
    commands: Sequence[str] = (),
) -> str:
    """MIME text for cloud-init, as the service requires (User Guide, working-with_ec2-user-data).

    `files` are texts by path, scripts end in `.sh`; `homes` is the id of an EFS file system, `lustre` DNS
    name and mount name of an FSx file system; `commands` run last. Raises ValueError for
    a text that no instance takes.
    """
    written = {**metadata.unit(FOLDER), **files}
    config = {
        # At each boot, before files are written, logins and the agents (cloud-init, "Boot stages").
        "bootcmd": [["sh", "-c", metadata.first(FOLDER)]],
        "write_files": [
            {"path": path, "permissions": "0755" if path.endswith(".sh") else "0644", "content": text}
            for path, text in written.items()
        ],
        "runcmd": [*_commands(homes, lustre), *commands],
    }
    mark = "==trainstack=="
    text = "\n".join(
        [
            "MIME-Version: 1.0",
            f'Content-Type: multipart/mixed; boundary="{mark}"',
            "",
            f"--{mark}",
            'Content-Type: text/cloud-config; charset="us-ascii"',
            "MIME-Version: 1.0",
            "",
            # JSON is YAML, without its surprises.
            json.dumps(config),
            "",
            f"--{mark}--",
            "",
        ]
    )
    if len(text.encode()) > MOST_BYTES:
        raise ValueError(f"user data has {len(text.encode())} bytes, and at most {MOST_BYTES} are allowed")
    return text


def encoded(text: str) -> str:
    """The text as a launch template holds it."""
    return base64.b64encode(text.encode()).decode()


def _commands(homes: str | None, lustre: tuple[str, str] | None) -> list[str]:
    found = [*metadata.start(), "useradd --system --uid 61000 --create-home trainstack || true"]
    # Its home is on the shared file system once that is mounted.
    home = f"mkdir -p {HOME}/trainstack && chown trainstack: {HOME}/trainstack"
    if homes is not None:
        fstab = shlex.quote(f"{homes}:/ {HOME} efs _netdev,tls,iam,noresvport 0 0")
        found += [f"echo {fstab} >> /etc/fstab", f"mount {HOME}", home]
    if lustre is not None:
        name, mount = lustre
        fstab = shlex.quote(f"{name}@tcp:/{mount} {FAST} lustre _netdev,relatime,flock 0 0")
        found += [f"mkdir -p {FAST}", f"echo {fstab} >> /etc/fstab", f"mount {FAST}"]
    return [*found, *tracking.start()]
