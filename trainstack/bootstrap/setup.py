"""The setup that the folder of a client implies: its pipelines and the backend of its state."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainstack.bootstrap.stacks import client_name, large_stack
from trainstack.bootstrap.trust import GITHUB, GITLAB, Pipeline, environment, github_path, prefix, rules
from trainstack.preflight.answers import Answer, State

_FILES: Final = {GITHUB: ".github/workflows/trainstack.yml", GITLAB: ".gitlab-ci.yml"}
_REMOTE = re.compile(
    r"(?:https://(?:[^@/]+@)?|ssh://git@|git@)(?P<host>github\.com|gitlab\.com)[:/](?P<path>[^\s]+?)(?:\.git)?/?"
)
_SECONDS = 10
"""Of git, and of a request to GitHub."""
_REVIEWERS: Final = "required_reviewers"


def _output(command: str) -> str:
    try:
        run = subprocess.run(
            shlex.split(command), capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip()


@dataclass(frozen=True)
class ClientSetup:
    """A client, and how its stacks are deployed."""

    client: str
    """The project of Pulumi."""
    pipeline: Pipeline | None
    """The pipeline of the folder's repository; None where it has none, or its repository is unknown."""
    backend: str
    """The address of the state; empty without a login."""
    form_known: bool = True
    """True if GitHub reported the form of the repository's subjects, with or without ids."""
    ids: str = ""
    """The repository with its ids, `OWNER@ID/REPOSITORY@ID`, where a pipeline of GitHub names them."""
    asked: Callable[[str], str] = _output
    """The output of a command of GitHub's CLI; empty without an answer."""
    folder: Path = Path()
    """The folder with the stack files."""

    def large_stack(self, stack: str) -> str:
        """The large stack whose deployer deploys a cluster's stack; else the stack itself."""
        return large_stack(stack, self.folder)

    def trusted_as(self, subjects: Iterable[str]) -> Pipeline | None:
        """The pipeline; in a form that is unknown, that of the trusted subjects of the repository."""
        if self.form_known or self.pipeline is None:
            return self.pipeline
        for subject in subjects:
            trusted = Pipeline(GITHUB, github_path(":".join(subject.split(":")[:2])))
            if trusted.path == self.pipeline.path:
                return Pipeline(GITHUB, self.ids) if self.ids and "@" in trusted.repository else trusted
        return self.pipeline

    def matched(self, check: str, trusted: str, pipeline: Pipeline, stack: str) -> Answer:
        """The answer of a check for conditions that are those of the pipeline of a stack."""
        command = rules(pipeline.path, stack)
        if self.form_known and pipeline.by_environment and _REVIEWERS not in self.asked(command):
            text = f"{trusted}; no required reviewers of the environment {environment(stack)} are known"
            fix = f"{command} must print {_REVIEWERS}; else a member who can push can deploy"
            return Answer(check, State.NOTE, text, fix)
        if self.form_known:
            return Answer(check, State.READY, f"{trusted}, the subject of the pipeline")
        text = f"{trusted}; whether tokens of {pipeline.path} have this form is unknown"
        fix = f"{prefix(pipeline.path)} must print repo:{pipeline.repository}; else: {self.command()}"
        return Answer(check, State.NOTE, text, fix)

    def command(self) -> str:
        """The command that prints the setup."""
        if self.pipeline is None:
            return "trainstack bootstrap, with the options of its first use"
        if not self.form_known:
            own = f"{prefix(self.pipeline.path)} | cut -d: -f2"
            return f'trainstack bootstrap --github "$({own})"'
        if self.pipeline.issuer == GITHUB:
            return f"trainstack bootstrap --github {self.pipeline.repository}"
        return f"trainstack bootstrap --gitlab {self.pipeline.repository} --branch {self.pipeline.branch}"

    def bucket(self, scheme: str, default: str) -> str:
        """The bucket of the backend if it is one of this scheme, such as `s3`; else the one of bootstrap."""
        start = f"{scheme}://"
        if not self.backend.startswith(start):
            return default
        return re.split(r"[/?]", self.backend.removeprefix(start))[0]


def setup_of(
    folder: Path,
    shell: Mapping[str, str] | None = None,
    remote: Callable[[Path], str] | None = None,
    asked: Callable[[str], str] | None = None,
) -> ClientSetup:
    """The setup of a client's folder.

    `remote` returns the address of its repository; `asked` the output of a command of GitHub's CLI, or
    nothing without an answer.
    """
    asked = asked or _output
    variables = os.environ if shell is None else shell
    pipeline, ids = _pipeline(folder, variables, remote or _origin), ""
    form_known = pipeline is None or pipeline.issuer != GITHUB
    if pipeline and not form_known:
        named = github_path(asked(prefix(pipeline.repository)))
        if form_known := Pipeline(GITHUB, named).path == pipeline.path:
            pipeline = Pipeline(GITHUB, named)
        ids = _with_ids(variables)
    return ClientSetup(client_name(folder), pipeline, _backend(variables), form_known, ids, asked, folder)


def _with_ids(shell: Mapping[str, str]) -> str:
    """The repository of a pipeline of GitHub with its ids (GitHub documentation, "Variables reference")."""
    owner, _, name = shell.get("GITHUB_REPOSITORY", "").partition("/")
    ids = shell.get("GITHUB_REPOSITORY_OWNER_ID", ""), shell.get("GITHUB_REPOSITORY_ID", "")
    return github_path(f"{owner}@{ids[0]}/{name}@{ids[1]}")


def _pipeline(folder: Path, shell: Mapping[str, str], remote: Callable[[Path], str]) -> Pipeline | None:
    if shell.get("GITHUB_REPOSITORY"):
        return Pipeline(GITHUB, shell["GITHUB_REPOSITORY"])
    if shell.get("CI_PROJECT_PATH") and shell.get("CI_SERVER_URL") == GITLAB:
        return Pipeline(GITLAB, shell["CI_PROJECT_PATH"], shell.get("CI_DEFAULT_BRANCH", "main"))
    found = _REMOTE.fullmatch(remote(folder))
    issuer = found and {"github.com": GITHUB, "gitlab.com": GITLAB}[found["host"]]
    if found is None or issuer is None or not (folder / _FILES[issuer]).is_file():
        return None
    return Pipeline(issuer, found["path"])


def _origin(folder: Path) -> str:
    return _output(f"git -C {shlex.quote(str(folder))} remote get-url origin")


def _backend(shell: Mapping[str, str]) -> str:
    """The backend of this shell, or of the last login (pulumi sdk/go/common/workspace/creds.go)."""
    if shell.get("PULUMI_BACKEND_URL"):
        return shell["PULUMI_BACKEND_URL"]
    home = Path(shell.get("PULUMI_HOME") or Path(shell.get("HOME", ""), ".pulumi"))
    folder = Path(shell.get("PULUMI_CREDENTIALS_PATH") or home)
    try:
        return str(json.loads((folder / "credentials.json").read_text(encoding="utf-8")).get("current") or "")
    except (OSError, ValueError, AttributeError):
        return ""
