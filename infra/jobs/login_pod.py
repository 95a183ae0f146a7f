"""The login pod of a Slurm system in a Kubernetes cluster: scripts by `kubectl exec`.

Source: kubectl reference, `exec` (-i, -c); slurm-operator v1.1.0 internal/builder/labels/labels.go for the
name of the container. The caller needs the right `create` on `pods/exec` in the namespace.
*Untested in a real cluster.*
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from infra.errors import Problem, UserError
from infra.jobs.service import LostError

PROGRAM: Final = "TRAINSTACK_KUBECTL"
"""Variable with the path of kubectl; without it, that on PATH."""
PLACE: Final = ("--namespace", "slurm", "exec", "-i", "deployment/login", "-c", "login")
SHELL: Final = ("--", "bash", "-s")
_PATIENCE_S: Final = 900.0
STATE: Final = "/home/.trainstack"
"""Folder of root on the file system of homes: where results go outlives the pod, as the results do."""
_START: Final = (
    f': "${{TRAINSTACK_STATE:={STATE}}}"\n'
    '[ -n "${TRAINSTACK_USER:-}" ] || id trainstack > /dev/null 2>&1 || useradd --uid 61000 --no-create-home '
    "--home-dir /home/trainstack --shell /bin/bash trainstack\n"
)
"""Start of a script: the folder of root, and the user of validations, which is not in the image."""
# kubectl ends with the code of the command, or with 1 and such a line where it ran none.
_NO_CONNECTION: Final = ("error: ", "Error from server", "Unable to connect", "The connection to the server")


class LoginPod:
    """Runs scripts as root of the login pod of a cluster."""

    def __init__(self, kubeconfig: str) -> None:
        """`kubeconfig`: its text, without a secret."""
        self._kubeconfig = kubeconfig

    def run(self, script: str, *, what: str) -> str:
        """The output of a script of bash.

        Raises UserError where it fails or kubectl is missing, LostError where the pod cannot be reached.
        """
        program = os.environ.get(PROGRAM) or shutil.which("kubectl")
        if program is None:
            rule, fix = "kubectl is not installed", "See kubernetes.io/docs/tasks/tools."
            raise UserError([Problem("kubectl", None, rule, fix, code="kubectl-missing")])
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "kubeconfig"
            config.write_text(self._kubeconfig, encoding="utf-8")
            command = [program, f"--kubeconfig={config}", *PLACE, *SHELL]
            try:
                done = subprocess.run(
                    command,
                    input=_START + script,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=_PATIENCE_S,
                )
            except subprocess.TimeoutExpired as error:
                raise LostError("the login pod did not answer") from error
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        if done.returncode and not done.stdout and last.startswith(_NO_CONNECTION):
            raise LostError(f"no connection to the login pod: {last}")
        if done.returncode:
            rule = f"the login pod could not {what}: {done.stdout.strip() or last}"
            fix = f"Run `kubectl {' '.join(PLACE)} -t -- bash`, and the command of the output by hand."
            raise UserError([Problem("login pod", "login", rule, fix, code="login-script")])
        return done.stdout
