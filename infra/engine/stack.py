"""One Pulumi stack, driven through the Automation API: operations, their events, and a clean interruption."""

import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulumi import automation
from pulumi.automation import (
    CommandError,
    CommandResult,
    OutputMap,
    PulumiCommand,
    StackNotFoundError,
)
from pulumi.automation.events import DiagnosticEvent, EngineEvent
from semver import VersionInfo

from infra.engine.golang import ROOT
from infra.engine.install import require
from infra.engine.packs import NO_PACKS, Packs, PolicyFinding
from infra.errors import REFUSED, Problem, UserError

# After an operation the Automation API asks for the stack's history. With secrets shown, the CLI would look
# for a decrypter in the stack file beside the program, whatever `--config-file` says, and write a salt there.
_HISTORY = {"show_secrets": False}

OnEvent = Callable[[EngineEvent], None]
_COLOR = re.compile(r"<\{%[^%]*%\}>")
# What the CLI says that wants a login and may not ask for one.
_LOGGED_OUT = "PULUMI_ACCESS_TOKEN must be set"
# What the engine says on failure besides the cause itself.
_ECHOES = ("update failed", "preview failed", "destroy failed", "refresh failed")


class InterruptibleCli(PulumiCommand):
    """The CLI in a process group of its own, so that one Ctrl-C reaches it exactly once, through `interrupt`.

    Pulumi takes a first interrupt as "finish what has begun" and a second as "stop at once": a terminal that
    signals the whole foreground group, and a parent that passes the signal on, would together be both.
    """

    def __init__(self, command: str, version: str) -> None:
        # The parent's constructor asks the CLI for its version; set-up knows it already.
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
    """How an operation ended: `changes` counts resources by operation, `errors` are the engine's words."""

    succeeded: bool
    changes: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    findings: list[PolicyFinding] = field(default_factory=list)
    """What policies said."""
    unstarted: bool = False
    """Whether the engine has ended while it loaded policy packs, before anything else."""

    @property
    def changed(self) -> int:
        """How many resources are not the same as before."""
        return sum(count for operation, count in self.changes.items() if operation not in ("same", "read"))

    @property
    def refused(self) -> bool:
        """Whether the input was refused: a user error, like one that is found before the engine starts."""
        return self.unstarted or any(error.partition("\n")[0].endswith(REFUSED) for error in self.errors)

    @property
    def violated(self) -> bool:
        """Whether it failed and a policy that binds forbids what was asked for."""
        return not self.succeeded and any(one.level == "mandatory" for one in self.findings)


class EventListener:
    """Gathers what an Outcome needs and passes every event on."""

    def __init__(self, on_event: OnEvent | None) -> None:
        self._on_event = on_event
        self.errors: list[str] = []
        self.changes: dict[str, int] = {}
        self.findings: list[PolicyFinding] = []
        self.started = self.ended = False

    def __call__(self, event: EngineEvent) -> None:
        """Take one event."""
        if event.diagnostic_event and event.diagnostic_event.severity == "error":
            text = plain(event.diagnostic_event)
            if text and text not in _ECHOES and text not in self.errors:
                self.errors.append(text)
        self.started |= event.prelude_event is not None
        self.ended |= event.cancel_event is not None
        if event.policy_event:
            self.findings.append(PolicyFinding.told(event.policy_event))
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

    The engine asks `packs` in `up` and in `preview`. Raises UserError where Pulumi cannot open the stack.
    """

    def __init__(
        self, name: str, environment: Mapping[str, str], work_dir: Path = ROOT, packs: Packs = NO_PACKS
    ) -> None:
        self.packs = packs
        cli = require()
        self.cli = InterruptibleCli(cli.path, cli.version)
        options = automation.LocalWorkspaceOptions(env_vars=environment, pulumi_command=self.cli)
        self._name = name
        with self._kept():
            self._stack = automation.select_stack(name, work_dir=str(work_dir), opts=options)

    @property
    def project(self) -> str:
        """The name of the Pulumi project."""
        return str(self._stack.workspace.project_settings().name)

    def up(self, on_event: OnEvent | None = None, replace: Sequence[str] = ()) -> OperationOutcome:
        """Create and change what the program asks for; make those of the URNs `replace` anew."""
        return self._run(self._stack.up, on_event, replace=[*replace], **self.packs.options, **_HISTORY)

    def preview(self, on_event: OnEvent | None = None) -> OperationOutcome:
        """Say what `up` would do."""
        return self._run(self._stack.preview, on_event, **self.packs.options)

    def refresh(self, on_event: OnEvent | None = None) -> OperationOutcome:
        """Take over what changed outside."""
        return self._run(self._stack.refresh, on_event, **_HISTORY)

    def destroy(self, on_event: OnEvent | None = None) -> OperationOutcome:
        """Delete everything."""
        return self._run(self._stack.destroy, on_event, **_HISTORY)

    def outputs(self) -> OutputMap:
        """The stack's outputs. Raises UserError where the state cannot be read."""
        with self._kept():
            return self._stack.outputs()

    def resources(self) -> list[dict[str, Any]]:
        """The resources of the state; secrets are encrypted. Raises UserError where it cannot be read."""
        with self._kept():
            return list((self._stack.export_stack().deployment or {}).get("resources") or [])

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """The state is where Pulumi's login says. Raises UserError where nothing there can be read."""
        try:
            yield
        except CommandError as error:
            raise UserError([_unreadable(self._name, error)]) from error

    def _run(
        self, operation: Callable[..., Any], on_event: OnEvent | None, **options: Any
    ) -> OperationOutcome:
        listener = EventListener(on_event)
        start = time.monotonic()
        try:
            operation(on_event=listener, **options)
        except CommandError as error:
            unstarted = bool(self.packs) and listener.ended and not listener.started
            errors = listener.errors or [last_words(str(error))]
            succeeded = False
        else:
            errors, unstarted, succeeded = [], False, True
        seconds = time.monotonic() - start
        return OperationOutcome(
            succeeded,
            listener.changes,
            errors,
            seconds,
            findings=listener.findings,
            unstarted=unstarted,
        )


def _unreadable(stack: str, error: CommandError) -> Problem:
    said = last_words(str(error))
    if _LOGGED_OUT in said:
        rule = "Pulumi is logged in nowhere, so nobody knows where the state is"
        fix = (
            "Say where with `pulumi login s3://BUCKET`, `gs://BUCKET` or another backend (README, State), or "
            "rehearse with --rehearse, which needs none."
        )
        return Problem("state", None, rule, fix, code="pulumi-not-logged-in")
    if isinstance(error, StackNotFoundError):
        fix = f"Make it with `pulumi stack init {stack}`, or log in where it is (`pulumi whoami --verbose`)."
        return Problem(
            "state",
            stack,
            "the backend that Pulumi is logged in to has no such stack",
            fix,
            code="stack-not-found",
        )
    fix = "`pulumi whoami --verbose` shows the backend, `pulumi login` chooses another one."
    return Problem("state", stack, f"it cannot be read: {said}", fix, code="state-not-readable")


def last_words(text: str) -> str:
    """What the CLI said last on its error stream, for failures that happen before there are events."""
    said = text.split("stderr:", 1)[-1]
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return "\n".join(line.removeprefix("error: ") for line in lines[-5:])
