"""Start the installed pulumi-resource-kubernetes, unmodified, in place of our provider.

It replaces this process, which holds a lease of the daemon, so that the control plane runs as long.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from rehearsal import control

NAME = "pulumi-resource-kubernetes"
# Folder of the control planes of a home, and that of programs that make no cluster.
FOLDER, AMBIENT = "control-plane", "ambient"
# Output of `aws eks get-token` and gke-gcloud-auth-plugin, written when a control plane starts.
CREDENTIAL = "exec-credential.json"
_LOGIN = """#!/bin/sh
# The kubeconfig of an EKS cluster runs the AWS CLI for a login; this returns that of the rehearsal.
case "$*" in
  *"eks get-token"*) ;;
  *) echo "the rehearsal has no AWS CLI: only 'aws eks get-token' is answered" >&2; exit 1 ;;
esac
region='*'
while [ $# -gt 0 ]; do
  case "$1" in
    --cluster-name) name=$2 ;;
    --cluster-name=*) name=${{1#*=}} ;;
    --region) region=$2 ;;
    --region=*) region=${{1#*=}} ;;
  esac
  shift
done
set -- '{planes}'/"$name".$region.*/{credential}
[ $# -eq 1 ] && exec cat "$1"
echo "several clusters are named $name; name a region" >&2
exit 1
"""
# The kubeconfig of a GKE cluster runs a plugin, which gets the cluster's address (provideClusterInfo).
_GOOGLE_LOGIN = """#!/bin/sh
for access in '{planes}'/*/access.json; do
  server=$(sed -n 's/.*"server": *"\\([^"]*\\)".*/\\1/p' "$access")
  case "$KUBERNETES_EXEC_INFO" in *"$server"*) exec cat "${{access%/*}}/{credential}" ;; esac
done
echo "no cluster of the rehearsal has the address that the kubeconfig names" >&2
exit 1
"""


def installed() -> Path | None:
    """The provider on PATH, or the newest in Pulumi's plug-in folder; None without one."""
    found = shutil.which(NAME)
    return Path(found) if found else max(_plugins(), key=_version, default=None)


def admin_kubeconfig(home: Path, kubeconfig: str = "") -> Path:
    """Administrator kubeconfig of the control plane that a user's kubeconfig (JSON) names, once it started.

    Without one, or of a cluster that is gone: that of programs that make no cluster.
    """
    for access in (home / FOLDER).glob("*/access.json") if kubeconfig else ():
        if json.loads(access.read_text(encoding="utf-8"))["server"] in kubeconfig:
            return access.with_name("admin.kubeconfig")
    return home / FOLDER / AMBIENT / "admin.kubeconfig"


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
        login.write_text(script.format(planes=Path(home) / FOLDER, credential=CREDENTIAL))
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
