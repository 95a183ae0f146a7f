"""Run a command line to its exit code: errors without a traceback, as text or as JSON."""

import errno
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer
from typer.exceptions import TyperException

from infra.engine.golang import SetupError
from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from infra.places import CLIENT, STATE
from rehearsal.control import ControlError
from smoke_training.__main__ import ERROR
from trainstack.stamp import environment

ERROR_SCHEMA = "trainstack.error/1"
DEBUG_VARIABLE = "TRAINSTACK_DEBUG"
_PASSED_ON = "smoke"
"""The command whose options belong to another program."""
_CHANGING = {"up", "refresh", "destroy", "run", "stop"}
"""Commands whose user errors are reported before the first change."""
_WITHOUT_ENGINE = {
    "advise",
    "audit",
    "bootstrap",
    "collect",
    "explain",
    "new",
    "preflight",
    "smoke",
    "versions",
}
"""Commands that run no Pulumi program, so they need no link to this installation and write nothing."""
_LEAST_COLUMNS = 20
"""No terminal has fewer: Rich would print nothing at 0, and leave out values at a few."""
_UNWRITABLE = (errno.EPIPE, errno.ENOSPC)
_Failure = tuple[tuple[type[BaseException], ...], ExitCode, str, str]
_ENDINGS: Sequence[_Failure] = (
    ((typer.Abort, EOFError), ExitCode.FAILED, "aborted", "Aborted; nothing was changed."),
    ((KeyboardInterrupt,), ExitCode.INTERRUPTED, "interrupted", "Interrupted."),
)
"""Exceptions by which a user ends a command, with exit code, code of the problem, and text."""


def execute(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code.

    With the variable TRAINSTACK_DEBUG, an internal error is raised with its traceback.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - until the end of the process
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) < _LEAST_COLUMNS:
        os.environ["COLUMNS"] = "80"
    try:
        code = _run(app, arguments)
        sys.stdout.flush()
    except (OSError, SystemExit) as error:
        failed = error.__context__ if isinstance(error, SystemExit) else error  # Rich exits on a closed pipe
        if not isinstance(failed, OSError) or failed.errno not in _UNWRITABLE:
            raise
        # Python flushes once more at its end, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if failed.errno == errno.EPIPE:
            return ExitCode.BROKEN_PIPE
        typer.echo(f"cannot write: {failed}", err=True)
        return ExitCode.FAILED
    return code


def _run(app: typer.Typer, arguments: Sequence[str]) -> int:
    as_json = wants_json(arguments)
    command = typer.main.get_command(app)
    command.rich_markup_mode = "rich"  # type: ignore[attr-defined]  # panels of the overview
    try:
        with command.make_context("trainstack", [*arguments]) as context:
            if CLIENT and not _WITHOUT_ENGINE & {*arguments[:1]}:
                environment.link(CLIENT)
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except TyperException as error:
        return _usage(error, as_json, ERROR if _PASSED_ON in arguments[:1] else error.exit_code)
    except UserError as error:
        unchanged = "; nothing was changed" if {*arguments[:1]} & _CHANGING else ""
        return fail(_listed(error.problems, unchanged), error.problems, ExitCode.USAGE, as_json)
    except (SetupError, ControlError) as error:
        kind = "setup-incomplete" if isinstance(error, SetupError) else "rehearsal-unavailable"
        problem = Problem("trainstack", None, str(error), error.fix, code=kind)
        return fail(_listed([problem]), [problem], ExitCode.FAILED, as_json)
    except (Exception, KeyboardInterrupt) as error:
        found = next((one for one in _ENDINGS if isinstance(error, one[0])), None)
        unwritable = isinstance(error, OSError) and error.errno in _UNWRITABLE
        if unwritable or (found is None and os.environ.get(DEBUG_VARIABLE)):
            raise
        return _ended(error, found, as_json, ERROR if _PASSED_ON in arguments[:1] else ExitCode.FAILED)
    return ExitCode.DONE


def _listed(problems: Sequence[Problem], unchanged: str = "") -> list[str]:
    plural = "s" if len(problems) > 1 else ""
    return [f"{len(problems)} problem{plural}{unchanged}:", *(f"  {problem}" for problem in problems)]


def _ended(error: BaseException, found: _Failure | None, as_json: bool, failed: int) -> int:
    if found is None:
        text = f"internal error: {type(error).__name__}: {error}"
        problem = Problem("trainstack", None, text, _traced(error), code="internal-error")
        return fail([text, problem.fix], [problem], failed, as_json)
    _, code, kind, text = found
    return fail([text], [Problem("trainstack", None, text, "", code=kind)], code, as_json)


def _traced(error: BaseException) -> str:
    """Write the traceback to a file that only its owner can read; return where it can be found."""
    try:
        STATE.mkdir(parents=True, exist_ok=True)
        opened, file = tempfile.mkstemp(".txt", "error-", STATE)
        with os.fdopen(opened, "w", errors="replace") as writer:
            traceback.print_exception(error, limit=-50, file=writer)  # else sys.tracebacklimit applies
    except OSError:
        return f"{DEBUG_VARIABLE}=1 shows where."
    return f"Its traceback is in {file}."


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON; also one that cannot be parsed otherwise."""
    own = [*arguments[: arguments.index("--")]] if "--" in arguments else [*arguments]
    if _PASSED_ON in own[:1]:
        return False
    given = [value for name, value in pairwise(own) if name in ("--format", "-f")]
    return "json" in given or bool({"--format=json", "-fjson"} & {*own})


def _usage(error: TyperException, as_json: bool, code: int) -> int:
    if as_json:
        context = getattr(error, "ctx", None)
        fix = f"Run `{context.command_path} --help`." if context else ""
        path = getattr(error, "option_name", None) or "arguments"
        problem = Problem(path, None, error.format_message().rstrip("."), fix, code="usage-error")
        return fail([], [problem], code, as_json)
    from typer.rich_utils import rich_format_error  # noqa: PLC0415 - slow to import

    rich_format_error(error)  # type: ignore[arg-type]  # every TyperException is one of click's
    return code


def fail(lines: Sequence[str], problems: Sequence[Problem], code: int, as_json: bool) -> int:
    """Print problems, as text or as JSON; return the exit code."""
    if as_json:
        rows = [_document(problem) for problem in problems]
        document = {"schema": ERROR_SCHEMA, "exit_code": int(code), "problems": rows}
        typer.echo(json.dumps(document, indent=2, default=str))
    else:
        typer.echo("\n".join(lines), err=True)
    return int(code)


def _document(problem: Problem) -> dict[str, Any]:
    named = {name: getattr(problem, name) for name in ("code", "path", "value", "rule", "fix")}
    more = {name: getattr(problem, name) for name in ("origin", "against", "against_origin")}
    return named | {name: value for name, value in more.items() if value}
