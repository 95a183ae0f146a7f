"""Exit codes of every `trainstack` command; docs/reference/exit-codes.md shows the same table."""

from collections.abc import Mapping
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes. Frozen: pipelines rely on them."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    VIOLATIONS = 3
    UNDETERMINED = 4
    EXPIRED_WAIVERS = 5
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    """As a process that SIGPIPE ended."""


EVERY: Mapping[int, str] = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "failed, aborted, or an internal error",
    ExitCode.USAGE: "usage error or invalid input; nothing was changed",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.BROKEN_PIPE: "the reader of the output closed it",
}
"""Meanings for every command that has no other one below."""

_ENGINE: Mapping[int, str] = {ExitCode.VIOLATIONS: "a mandatory policy is violated"}
OF_COMMAND: Mapping[str, Mapping[int, str]] = {
    "up": {**_ENGINE, ExitCode.FAILED: "the deployment or its validation failed"},
    "preview": {
        ExitCode.VIOLATIONS: "a mandatory policy is violated, or the price is above a limit",
        ExitCode.UNDETERMINED: "the price may be above a limit: some prices are unknown",
    },
    "new": _ENGINE,
    "drift": {ExitCode.DONE: "no drift", ExitCode.VIOLATIONS: "drift"},
    "preflight": {
        ExitCode.DONE: "ready to deploy",
        ExitCode.FAILED: "a requirement is missing",
        ExitCode.USAGE: "a check could not be made, or invalid input",
    },
    "validate": {
        ExitCode.DONE: "every node passed",
        ExitCode.FAILED: "a node did not pass, or was not idle in time",
    },
    "versions": {ExitCode.USAGE: "a newest version is unknown, or invalid input"},
    "run": {
        ExitCode.DONE: "completed",
        ExitCode.FAILED: "failed or stopped",
        ExitCode.INTERRUPTED: "interrupted; the run continues",
    },
    "stop": {
        ExitCode.DONE: "the run has ended",
        ExitCode.FAILED: "it is unknown whether the run has ended",
        ExitCode.INTERRUPTED: "interrupted; the run may still be stopping",
    },
    "audit": {
        ExitCode.DONE: "no violation",
        ExitCode.FAILED: "internal error",
        ExitCode.USAGE: "usage error, or a file that cannot be read",
        ExitCode.VIOLATIONS: "violations",
        ExitCode.UNDETERMINED: "no violation, but undetermined results",
        ExitCode.EXPIRED_WAIVERS: "only violations with expired waivers",
    },
    "report": {
        ExitCode.FAILED: "a program that reads the state is missing; the page is written, without it",
        ExitCode.USAGE: "the state cannot be read; the page is written, without it. Or invalid input",
    },
    "update": {ExitCode.FAILED: "conflicts, or an approval is missing; nothing was changed"},
    "fleet": {
        ExitCode.FAILED: "a stack failed or was not started",
        ExitCode.VIOLATIONS: "a mandatory policy is violated, or there is drift",
        ExitCode.INTERRUPTED: "interrupted; the same command continues",
    },
    # smoke_training/model.py, which ships without this package.
    "smoke": {0: "PASS", 1: "FAIL", 2: "INCONCLUSIVE", 3: "ERROR", 4: "SKIPPED"},
}
"""Meanings by command, where they differ from `EVERY` or add to it."""


def help_text(command: str) -> str:
    """The exit codes of a command, for the end of its help."""
    meanings = OF_COMMAND.get(command, {})
    if command != "smoke":
        meanings = {**{code: EVERY[code] for code in (0, 1, 2)}, **meanings}
    return f"Exit codes: {', '.join(f'{int(code)} {text}' for code, text in sorted(meanings.items()))}."
