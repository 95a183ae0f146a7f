"""Problems of a stack's state, from the CLI's messages and from the state itself."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pulumi.automation import CommandError, StackNotFoundError

from infra.engine import install
from infra.errors import Problem

# Message of the CLI without a login in non-interactive mode.
_LOGGED_OUT = "PULUMI_ACCESS_TOKEN must be set"


def unreadable(stack: str, error: CommandError) -> Problem:
    """The problem of a state that the CLI cannot read or write."""
    message = last_lines(str(error))
    if _LOGGED_OUT in message:
        rule = "not logged in to a Pulumi backend"
        guides = "docs/tutorials/aws-account.md, docs/tutorials/google-cloud-project.md"
        command = install.command()
        fix = f"Run `{command} login s3://BUCKET`, `gs://BUCKET` or another backend ({guides})."
        return Problem("state", None, rule, fix, code="pulumi-not-logged-in")
    if isinstance(error, StackNotFoundError):
        command = install.command()
        fix = f"Run `{command} stack init {stack}`, or log in to its backend (`{command} whoami --verbose`)."
        rule = "the Pulumi backend has no such stack"
        return Problem("state", stack, rule, fix, code="stack-not-found")
    command = install.command()
    fix = f"`{command} whoami --verbose` shows the backend, `{command} login` chooses another one."
    return Problem("state", stack, f"cannot be read: {message}", fix, code="state-not-readable")


def pending(stack: str, deployment: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of operations whose result is unknown."""
    for one in deployment.get("pending_operations") or []:
        kind, urn = one["type"], one["resource"]["urn"]
        command = install.command()
        fix = f"Look for it in the cloud, then answer `{command} refresh -s {stack}`, which asks for its id."
        yield Problem(urn, kind, "was interrupted, with unknown result", fix, code="operation-pending")


def last_lines(text: str) -> str:
    """The last error lines of the CLI, for failures before the first event."""
    errors = text.split("stderr:", 1)[-1]
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return "\n".join(line.removeprefix("error: ") for line in lines[-5:])


def causes(text: str) -> str:
    """The errors that a failed `pulumi preview --json` wrote to its standard output, else its last lines."""
    found = re.search(r"^ stdout: (\{.*)\n stderr:", text, re.DOTALL | re.MULTILINE)
    try:
        rows = json.loads(found[1]).get("diagnostics") if found else ()
    except ValueError:
        rows = ()
    errors = [str(row.get("message", "")) for row in rows or () if row.get("severity") == "error"]
    lines = [_without_frames(re.sub(r"<\{%.*?%\}>", "", one).strip()) for one in errors]
    # The engine ends with one that says only that there were errors.
    said = [one for one in lines if one and one not in ("preview failed", "update failed")]
    return "\n".join(dict.fromkeys(said)) or last_lines(text)


def _without_frames(message: str) -> str:
    """A message without the frames of a traceback of Python but the last one's place."""
    head, found, rest = message.partition("Traceback (most recent call last):")
    lines = rest.strip().splitlines()
    if not found or not lines:
        return message
    places = re.findall(r'^ *File "(.+)", line (\d+)', rest, re.MULTILINE)
    place = " ({}:{})".format(*places[-1]) if places else ""
    return f"{head.strip()} {lines[-1].strip()}{place}".strip()
