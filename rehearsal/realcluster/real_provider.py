"""Start the installed pulumi-resource-kubernetes, unmodified, in place of our provider.

It replaces this process, which holds a lease of the daemon, so that the control plane runs as long.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from rehearsal import control

NAME = "pulumi-resource-kubernetes"
# Output of `aws eks get-token` and gke-gcloud-auth-plugin, written when the control plane starts.
FOLDER, CREDENTIAL = "control-plane", "exec-credential.json"
_LOGIN = """#!/bin/sh
# The kubeconfig of an EKS cluster runs the AWS CLI for a login; this returns that of the rehearsal.
case "$*" in
  *"eks get-token"*) exec cat {credential} ;;
  *) echo "the rehearsal has no AWS CLI: only 'aws eks get-token' is answered" >&2; exit 1 ;;
esac
"""
# The kubeconfig of a GKE cluster runs a plugin; here there is one login.
_GOOGLE_LOGIN = """#!/bin/sh
exec cat {credential}
"""


def installed() -> Path | None:
    """The provider on PATH, or the newest in Pulumi's plug-in folder; None without one."""
    found = shutil.which(NAME)
    return Path(found) if found else max(_plugins(), key=_version, default=None)


def admin_kubeconfig(home: Path) -> Path:
    """Administrator kubeconfig of a home's control plane, once it was started."""
    return home / FOLDER / "admin.kubeconfig"


def _plugins() -> Iterator[Path]:
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    return (home / "plugins").glob(f"resource-kubernetes-v*/{NAME}")


def _version(plugin: Path) -> tuple[int, ...]:
    text = plugin.parent.name.rpartition("-v")[2]
    return tuple(int(part) for part in text.split("-")[0].split(".") if part.isdigit())


def main(provider: str, home: str) -> int:
    """Run the provider; returns an exit status only when that is impossible."""
    folder = Path(home) / "login"
    folder.mkdir(exist_ok=True)
    for name, script in (("aws", _LOGIN), ("gke-gcloud-auth-plugin", _GOOGLE_LOGIN)):
        login = folder / name
        login.write_text(script.format(credential=Path(home) / FOLDER / CREDENTIAL))
        login.chmod(0o700)
    try:
        connection, _ = control.lease(Path(home), {"op": "hold", "engine": os.getppid()})
    except control.ControlError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    connection.socket.set_inheritable(True)
    path = os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])
    # The engine passes its address as an argument.
    return os.execve(provider, [provider, *sys.argv[4:]], {**os.environ, "PATH": path})  # noqa: S606
