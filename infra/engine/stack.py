"""A Pulumi stack through the Automation API: operations, events, and graceful interruption."""

import json
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulumi import automation
from pulumi.automation import CommandError, CommandResult, OutputMap, PulumiCommand
from pulumi.automation.events import DiagnosticEvent, EngineEvent
from semver import VersionInfo

from infra.engine.install import require
from infra.engine.packs import NO_PACKS, Packs, PolicyFinding
from infra.engine.state_problems import causes, last_lines, pending, unreadable
from infra.errors import REFUSED, Problem, UserError
from infra.places import PACKAGES, STACKS

# After an operation the Automation API reads the stack's history. With secrets shown, the CLI would look for
# a decrypter in the stack file beside the program, regardless of `--config-file`, and write a salt there.
_HISTORY = {"show_secrets": False}

OnEvent = Callable[[EngineEvent], None]
_COLOR = re.compile(r"<\{%[^%]*%\}>")
# Messages of a backend in files or buckets, and of Pulumi Cloud (pkg/backend/diy/lock.go; HTTP status 409).
_LOCKED = ("the stack is currently locked", "Another update is currently in progress")
# Further messages of the engine on failure, besides the cause.
_ECHOES = ("update failed", "preview failed", "destroy failed", "refresh failed")


class InterruptibleCli(PulumiCommand):
    """The CLI in a process group of its own, so that one Ctrl-C reaches it exactly once, through `signal`.

    Pulumi finishes running steps on the first interrupt and stops at once on the second: a signal of the
    terminal to the whole foreground group, and one of this process, would count as two.
    """

    def __init__(self, command: str, version: str) -> None:
        # The parent's constructor runs the CLI for its version, which set-up has stored.
        self.command = command
        self.version = VersionInfo.parse(version)
        self._process: subprocess.Popen[str] | None = None

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: Callable[[str], Any] | None = None,
        on_error: Callable[[str], Any] | None = None,
    ) -> CommandResult:
        """Run a command to its end. Raises CommandError when it fails."""
        environment = {**additional_env, "PULUMI_AUTOMATION_API": "true"}
        process = subprocess.Popen(
            [self.command, "--non-interactive", *args],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._process = process
        lines: dict[str, list[str]] = {"out": [], "error": []}

        def listen(name: str, stream: Any, callback: Callable[[str], Any] | None) -> None:
            for line in stream:
                lines[name].append(line.rstrip())
                if callback:
                    callback(line.rstrip())

        listeners = [
            threading.Thread(target=listen, args=("out", process.stdout, on_output)),
            threading.Thread(target=listen, args=("error", process.stderr, on_error)),
        ]
        for listener in listeners:
            listener.start()
        for listener in listeners:
            listener.join()
        code = process.wait()
        result = CommandResult("\n".join(lines["out"]), "\n".join(lines["error"]), code)
        if code:
            raise automation.errors.create_command_error(result)
        return result

    def signal(self, number: int) -> None:
        """Send a signal to the CLI, if it runs."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(number)


@dataclass
class OperationOutcome:
    """Result of an operation: `changes` counts resources by operation, `errors` are the engine's messages."""

    succeeded: bool
    changes: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    findings: list[PolicyFinding] = field(default_factory=list)
    """Findings of policies."""
    unstarted: bool = False
    """Whether the engine ended while loading policy packs, before any step."""

    @property
    def changed(self) -> int:
        """Number of changed resources."""
        return sum(count for operation, count in self.changes.items() if operation not in ("same", "read"))

    @property
    def refused(self) -> bool:
        """Return whether the program refused its input: a user error, as before the start of the engine."""
        return self.unstarted or any(error.partition("\n")[0].endswith(REFUSED) for error in self.errors)

    @property
    def locked(self) -> bool:
        """Return whether the backend refused it because another operation on the stack runs."""
        return any(one in error for one in _LOCKED for error in self.errors)

    @property
    def violated(self) -> bool:
        """Return whether it failed with a violation of a mandatory policy."""
        return not self.succeeded and any(one.level == "mandatory" for one in self.findings)


class EventListener:
    """Collects the data of an OperationOutcome and forwards every event."""

    def __init__(self, on_event: OnEvent | None) -> None:
        self._on_event = on_event
        self.errors: list[str] = []
        self.changes: dict[str, int] = {}
        self.findings: list[PolicyFinding] = []
        self.started = self.ended = False

    def __call__(self, event: EngineEvent) -> None:
        """Process one event."""
        if event.diagnostic_event and event.diagnostic_event.severity == "error":
            text = plain(event.diagnostic_event)
            if text and text not in _ECHOES and text not in self.errors:
                self.errors.append(text)
        self.started |= event.prelude_event is not None
        self.ended |= event.cancel_event is not None
        if event.policy_event:
            self.findings.append(PolicyFinding.of(event.policy_event))
        if event.summary_event:
            changes = event.summary_event.resource_changes
            self.changes = {getattr(kind, "value", str(kind)): count for kind, count in changes.items()}
        if self._on_event:
            self._on_event(event)


def plain(event: DiagnosticEvent) -> str:
    """The text of a diagnostic without colours."""
    return _COLOR.sub("", event.message).strip()


class EngineStack:
    """A Pulumi stack of this project; `environment` is that of every engine process.

    The engine runs `packs` in `up` and in `preview`. Raises UserError where Pulumi cannot open the stack.
    """

    def __init__(
        self,
        name: str,
        environment: Mapping[str, str],
        work_dir: Path = STACKS or PACKAGES,
        packs: Packs = NO_PACKS,
    ) -> None:
        self.packs = packs
        cli = require()
        self.cli = InterruptibleCli(cli.path, cli.version)
        options = automation.LocalWorkspaceOptions(env_vars=environment, pulumi_command=self.cli)
        self._name = name
        with self._kept():
            self._stack = automation.select_stack(name, work_dir=str(work_dir), opts=options)

    @property
    def name(self) -> str:
        """The name of the stack."""
        return self._name

    @property
    def project(self) -> str:
        """The name of the Pulumi project."""
        return str(self._stack.workspace.project_settings().name)

    def up(self, on_event: OnEvent | None = None, replace: Sequence[str] = ()) -> OperationOutcome:
        """Create and change the resources of the program; replace those of the URNs `replace`."""
        return self._run(self._stack.up, on_event, replace=[*replace], **self.packs.options, **_HISTORY)

    def preview(self, on_event: OnEvent | None = None) -> OperationOutcome:
        """Plan the changes of `up`."""
        return self._run(self._stack.preview, on_event, **self.packs.options)

    def planned(self, fix: str = "") -> dict[str, Any]:
        """The document of `pulumi preview --json` with all resources.

        Raises UserError where it fails, with `fix` or the command that shows the cause.
        """
        try:
            done = self._stack._run_pulumi_cmd_sync(["preview", "--json", "--show-sames"])
        except CommandError as error:
            fix = fix or f"`trainstack preview -s {self._name}` shows the same, with the cause."
            path, rule = f"stack {self._name}", f"the preview failed: {causes(str(error)).rstrip('.')}"
            raise UserError([Problem(path, None, rule, fix, code="preview-failed")]) from error
        return dict(json.loads(done.stdout))

    def refresh(self, on_event: OnEvent | None = None, targets: Sequence[str] = ()) -> OperationOutcome:
        """Update the state with external changes, of the URNs `targets` only, if any."""
        return self._run(self._stack.refresh, on_event, target=[*targets], **_HISTORY)

    def drift(self, on_event: OnEvent | None = None) -> OperationOutcome:
        """Plan a refresh: compare the state with the cloud; neither is changed."""
        return self._run(self._stack.preview_refresh, on_event)

    def destroy(self, on_event: OnEvent | None = None) -> OperationOutcome:
        """Delete everything."""
        return self._run(self._stack.destroy, on_event, **_HISTORY)

    def delete(self, on_event: OnEvent | None, targets: Sequence[str]) -> OperationOutcome:
        """Delete the resources of these URNs; an error where others depend on them."""
        assert targets, "without a target, the engine deletes everything"
        return self._run(self._stack.destroy, on_event, target=[*targets], **_HISTORY)

    def retain(self, urns: Collection[str], on_event: OnEvent | None = None) -> OperationOutcome:
        """Mark resources of the state: an operation that deletes them only forgets them.

        `locked` where another operation runs, or has changed the state meanwhile. Raises UserError where the
        state cannot be read or written, and before the change for operations of unknown result: an import
        drops their record (pulumi v3.259.0 pkg/cmd/pulumi/stack/io.go, SaveSnapshot).
        """
        if problems := [*pending(self._name, self._deployment())]:
            raise UserError(problems)
        outcome = self.ask_lock(on_event)
        if not outcome.succeeded:
            return outcome
        before = self._exported()
        state = json.loads(before)
        for one in state["deployment"].get("resources") or []:
            if one["urn"] in urns:
                one["retainOnDelete"] = True
        # The SDK's import leaves its file behind when it fails.
        with self._kept(), tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(state, file)
            file.flush()
            # An import takes the lock only while it writes.
            if self._exported() != before:
                return OperationOutcome(succeeded=False, errors=[_LOCKED[1]])
            try:
                self._stack._run_pulumi_cmd_sync(["stack", "import", "--file", file.name])
            except CommandError as error:
                found = OperationOutcome(succeeded=False, errors=[last_lines(str(error))])
                if not found.locked:
                    raise
                return found
        return outcome

    def replace_state(self, deployment: Mapping[str, Any]) -> None:
        """Give the stack another state, whose secrets are in plain text; the stack's own key encrypts them.

        Raises UserError where the engine refuses it.
        """
        own = json.loads(self.exported()).get("deployment") or {}
        # Without the key, the CLI ends with a panic at the first secret.
        key = {name: own[name] for name in ("secrets_providers",) if name in own}
        with self._kept(), tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"version": 3, "deployment": {**deployment, **key}}, file)
            file.flush()
            self._stack._run_pulumi_cmd_sync(["stack", "import", "--file", file.name])

    def ask_lock(self, on_event: OnEvent | None = None) -> OperationOutcome:
        """Take the lock of the stack and give it back; `locked` where another operation has it.

        A refresh of the root alone: it asks no cloud, and its state is not changed. A preview takes no lock
        (pulumi v3.259.0 pkg/backend/diy/backend.go), and each backend has its own form of one.
        """
        roots = [one["urn"] for one in self.resources() if one["type"] == "pulumi:pulumi:Stack"]
        if not roots:
            return OperationOutcome(succeeded=True)
        return self.refresh(on_event, roots)

    def exported(self) -> str:
        """The state as `pulumi stack export` writes it, secrets encrypted. Raises UserError."""
        with self._kept():
            return str(self._stack._run_pulumi_cmd_sync(["stack", "export"]).stdout)

    def outputs(self) -> OutputMap:
        """The stack's outputs. Raises UserError where the state cannot be read."""
        with self._kept():
            return self._stack.outputs()

    def resources(self) -> list[dict[str, Any]]:
        """The resources of the state; secrets are encrypted. Raises UserError where it cannot be read."""
        return list(self._deployment().get("resources") or [])

    def _deployment(self) -> dict[str, Any]:
        return dict(json.loads(self._exported()).get("deployment") or {})

    def _exported(self) -> str:
        # The SDK's export decrypts secrets.
        with self._kept():
            return str(self._stack._run_pulumi_cmd_sync(["stack", "export"]).stdout)

    @contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except CommandError as error:
            raise UserError([unreadable(self._name, error)]) from error

    def _run(
        self, operation: Callable[..., Any], on_event: OnEvent | None, **options: Any
    ) -> OperationOutcome:
        listener = EventListener(on_event)
        start = time.monotonic()
        try:
            operation(on_event=listener, **options)
        except CommandError as error:
            unstarted = bool(self.packs) and listener.ended and not listener.started
            errors = listener.errors or [last_lines(str(error))]
            succeeded = False
        else:
            errors, unstarted, succeeded = [], False, True
        seconds = time.monotonic() - start
        return OperationOutcome(
            succeeded, listener.changes, errors, seconds, findings=listener.findings, unstarted=unstarted
        )
