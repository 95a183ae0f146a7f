"""Start of a node: file systems, scripts of Slurm, and credentials of the instance for root alone. Pure."""

import base64
import json
import shlex
from collections.abc import Mapping
from typing import Final

FOLDER: Final = "/opt/trainstack/slurm"
"""Folder of prolog.sh, epilog.sh and health.sh on every node."""
HOME: Final = "/home"
FAST: Final = "/fsx"
_METADATA: Final = "169.254.169.254"


def user_data(scripts: Mapping[str, str], *, homes: str | None, lustre: tuple[str, str] | None) -> str:
    """MIME text for cloud-init, as the service requires (User Guide, working-with_ec2-user-data).

    `scripts` are files of `FOLDER` by name; `homes` is the id of an EFS file system, `lustre` DNS name and
    mount name of an FSx file system.
    """
    config = {
        "write_files": [
            {"path": f"{FOLDER}/{name}", "permissions": "0755", "content": text}
            for name, text in scripts.items()
        ],
        "runcmd": [*_commands(homes, lustre)],
    }
    mark = "==trainstack=="
    return "\n".join(
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


def encoded(text: str) -> str:
    """The text as a launch template holds it."""
    return base64.b64encode(text.encode()).decode()


def _commands(homes: str | None, lustre: tuple[str, str] | None) -> list[str]:
    # A job could otherwise act as the instance: register nodes, read code, write results of validations.
    only_root = f"OUTPUT -d {_METADATA} -m owner ! --uid-owner 0 -j REJECT"
    found = ["useradd --system --uid 61000 --create-home trainstack || true"]
    found += [f"iptables -C {only_root} 2>/dev/null || iptables -I {only_root}"]
    # Its home is on the shared file system once that is mounted.
    home = f"mkdir -p {HOME}/trainstack && chown trainstack: {HOME}/trainstack"
    if homes is not None:
        fstab = shlex.quote(f"{homes}:/ {HOME} efs _netdev,tls,iam,noresvport 0 0")
        found += [f"echo {fstab} >> /etc/fstab", f"mount {HOME}", home]
    if lustre is not None:
        name, mount = lustre
        fstab = shlex.quote(f"{name}@tcp:/{mount} {FAST} lustre _netdev,relatime,flock 0 0")
        found += [f"mkdir -p {FAST}", f"echo {fstab} >> /etc/fstab", f"mount {FAST}"]
    return found
