"""The login node of a Slurm system on Google Cloud: scripts by `gcloud compute ssh` through IAP.

Source: gcloud reference, `compute ssh` (--tunnel-through-iap, --command) and `compute instances list`. The
caller needs `roles/compute.osAdminLogin` and `roles/iap.tunnelResourceAccessor`. *Untested in a real
project.*
"""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Final

from infra.errors import Problem, UserError
from infra.jobs.service import LostError
from infra.naming import LOGIN_TAG, gcp_labels, lasting_tags

PROGRAM: Final = "TRAINSTACK_GCLOUD"
"""Variable with the path of gcloud; without it, that on PATH."""
_PATIENCE_S: Final = 180.0
_NO_CONNECTION: Final = 255
"""Exit code of ssh that could not connect (ssh(1)); that of a script is passed on."""


class LoginNode:
    """Runs scripts as root of the login node of a stack."""

    def __init__(self, project: str, stack: str) -> None:
        self._project, self._stack = project, stack
        self._place: tuple[str, str] | None = None

    def run(self, script: str, *, what: str) -> str:
        """The output of a script of bash.

        Raises UserError where it fails or gcloud is missing, LostError where the node cannot be reached.
        """
        name, zone = self._found()
        command = ["compute", "ssh", name, "--zone", zone, "--tunnel-through-iap", "--quiet"]
        # Keys stay in the profile of OS Login, whose size is limited (cluster-toolkit#3363).
        command += ["--ssh-key-expire-after", "1h"]
        done = self._gcloud([*command, "--command", "sudo bash -s"], script)
        if done.returncode == _NO_CONNECTION:
            raise LostError(f"no connection to the login node: {_last(done.stderr)}")
        if done.returncode:
            rule = f"the login node could not {what}: {done.stdout.strip() or _last(done.stderr)}"
            fix = f"Run `{self.command(name, zone)}`, and run the command of the output by hand."
            raise UserError([Problem("login node", name, rule, fix, code="login-script")])
        return done.stdout

    def command(self, name: str, zone: str) -> str:
        """The command that opens a login node."""
        return f"gcloud compute ssh {name} --project {self._project} --zone {zone} --tunnel-through-iap"

    def _found(self) -> tuple[str, str]:
        if self._place is None:
            labels = gcp_labels({**lasting_tags(self._stack), LOGIN_TAG[0]: LOGIN_TAG[1]})
            terms = [*(f"labels.{key}={value}" for key, value in labels.items()), "status=RUNNING"]
            chosen = " AND ".join(terms)
            done = self._gcloud(
                ["compute", "instances", "list", "--filter", chosen, "--format", "json(name,zone)"], ""
            )
            if done.returncode:
                raise LostError(f"gcloud cannot list instances: {_last(done.stderr)}")
            found = json.loads(done.stdout or "[]")
            if not found:
                raise LostError("the login node does not run yet")
            if len(found) > 1:
                # A script for root goes there, and its output is believed.
                names = ", ".join(str(one["name"]) for one in found)
                rule, fix = "have the labels of the login node", "Remove them from all but that machine."
                raise UserError([Problem("login node", names, rule, fix, code="login-node-twice")])
            self._place = str(found[0]["name"]), str(found[0]["zone"]).rpartition("/")[2]
        return self._place

    def _gcloud(self, words: Sequence[str], text: str) -> "subprocess.CompletedProcess[str]":
        program = os.environ.get(PROGRAM) or shutil.which("gcloud")
        if program is None:
            rule, fix = "gcloud is not installed", "Install the Google Cloud CLI, and log in with it."
            raise UserError([Problem("gcloud", None, rule, fix, code="gcloud-missing")])
        try:
            return subprocess.run(
                [program, *words, "--project", self._project],
                input=text, capture_output=True, text=True, check=False, timeout=_PATIENCE_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise LostError("the login node did not answer") from error


def _last(text: str) -> str:
    """The last line before the advice of gcloud, which says no reason itself."""
    lines = text.partition("Recommendation:")[0].strip().splitlines()
    return (lines or ["no reason given"])[-1]
