"""Outcome of one stack's command: its state, its problems, and whether a cloud has throttled it."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any

from infra.errors import Problem
from infra.exit_codes import ExitCode
from trainstack.fleet.child import Ended
from trainstack.fleet.stacks import FleetStack


class State(StrEnum):
    """State of a stack in a fleet command."""

    DONE = "done"
    VIOLATED = "violated"
    """A mandatory policy is violated, or the command found what it looks for (`audit`, `drift`)."""
    FAILED = "failed"
    UNUSABLE = "unusable"
    """The entry, the folder, the credentials or the backend of the client cannot be used."""
    TIMED_OUT = "timed-out"
    INTERRUPTED = "interrupted"
    CHANGED = "changed"
    """Left out of `up`: a later preview differs from the confirmed one."""
    NOT_STARTED = "not-started"


FAILURES = frozenset({State.FAILED, State.UNUSABLE, State.TIMED_OUT})
"""States that count for the stop rule of a deployment."""
FINISHED = frozenset({State.DONE, State.VIOLATED})
"""States that a continued run does not repeat."""

_THROTTLED = re.compile(
    # Error codes of AWS ("Common Error Types", and EC2's and S3's) and messages of its services.
    r"ThrottlingException|\bThrottling:|api error Throttling|RequestLimitExceeded|TooManyRequestsException"
    r"|RequestThrottled(Exception)?\b|\bSlowDown\b|PriorRequestNotComplete|BandwidthLimitExceeded"
    r"|TransactionInProgressException|[Rr]ate exceeded|retry quota exceeded"
    # Of Google (google.rpc.ErrorInfo, and the older errors of Compute Engine), and Pulumi Cloud.
    r"|rateLimitExceeded|userRateLimitExceeded|RATE_LIMIT_EXCEEDED"
    r"|Error 429\b|HTTP 429\b|status code:? 429\b|\[429\]|429 Too Many Requests"
)
_REASONS = (
    (
        "passphrase-wrong", re.compile(r"incorrect passphrase"),
        "the passphrase does not open the secrets of the stack",
        "Correct the place or the content of `backend.passphrase` of this client.",
    ),
    (
        "passphrase-missing", re.compile(r"passphrase must be set|PULUMI_CONFIG_PASSPHRASE"),
        "the stack has secrets, and the client has no passphrase",
        "Add `passphrase: {file: ...}` or `{command: [...]}` to its backend.",
    ),
    (
        "backend-unreachable",
        re.compile(
            r"unable to open bucket|could not open bucket|unable to check .*bucket|could not list bucket"
            r"|i/o timeout|connection refused|no such host|context deadline exceeded|TLS handshake timeout"
        ),
        "the backend or a cloud does not answer",
        "Check the URL of the backend, its credentials and the network.",
    ),
)  # fmt: skip

_LONGEST = 200
"""Characters of a message in a table."""
_KEYS = ("code", "path", "rule", "fix")


@dataclass(frozen=True)
class StackOutcome:
    """Outcome of a command for one stack."""

    client: str
    stack: str
    state: State
    cloud: str = ""
    environment: str = ""
    region: str = ""
    code: int | None = None
    """Exit code of the command; None where it was not started."""
    seconds: float = 0.0
    attempts: int = 0
    throttled: bool = False
    """Whether a cloud or the backend has refused requests because of their rate."""
    problems: tuple[Mapping[str, Any], ...] = ()
    """Problems: code, path, rule and fix."""
    result: Mapping[str, Any] | None = field(default=None, repr=False)
    """JSON document of the command, by its own schema."""
    log: str = ""
    """File with the progress of the command; empty without one."""

    @property
    def id(self) -> str:
        """Name of the stack in the fleet."""
        return f"{self.client}/{self.stack}"

    @property
    def reason(self) -> str:
        """The first problem as one line, shortened; empty without one."""
        if not self.problems:
            return ""
        first = self.problems[0]
        rule = textwrap.shorten(first["rule"], _LONGEST, placeholder=" ...").rstrip(".")
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        return f"{' '.join(filter(None, (f'{rule}.', first['fix'])))} [{first['code']}]{more}"

    @property
    def document(self) -> dict[str, Any]:
        """The outcome as JSON."""
        return asdict(self)


def documents(problems: Iterable[Problem]) -> tuple[Mapping[str, str], ...]:
    """Problems as JSON, without values, which may be secret."""
    return tuple({name: str(getattr(one, name)) for name in _KEYS} for one in problems)


def of_stack(stack: FleetStack, state: State, **values: Any) -> StackOutcome:
    """An outcome of a stack."""
    return StackOutcome(
        stack.client.name, stack.name, state, stack.cloud, stack.environment, stack.region, **values
    )


def of_ended(stack: FleetStack, ended: Ended, attempts: int, log: str) -> StackOutcome:
    """The outcome of a command that has ended."""
    document = ended.document
    messages = [ended.log] if document is None else [*_messages(document)]
    failed = ended.code != ExitCode.DONE
    throttled = any(_THROTTLED.search(one) for one in (*messages, ended.log))
    problems = _problems(ended, document, messages) if failed else ()
    return of_stack(
        stack, _state(ended, document, problems), code=ended.code, seconds=round(ended.seconds, 1),
        attempts=attempts, throttled=throttled, problems=tuple(problems), log=log,
        result=document if document and document.get("schema") != "trainstack.error/1" else None,
    )  # fmt: skip


def _state(ended: Ended, document: Mapping[str, Any] | None, problems: Iterable[Mapping[str, Any]]) -> State:
    codes = {one["code"] for one in problems}
    if ended.timed_out:
        return State.TIMED_OUT
    if ended.interrupted and ended.code != ExitCode.DONE:
        return State.INTERRUPTED
    if "plan-changed" in codes:
        return State.CHANGED
    if ended.code == ExitCode.DONE:
        return State.DONE if document is not None else State.FAILED
    if ended.code in (ExitCode.VIOLATIONS, ExitCode.UNDETERMINED, ExitCode.EXPIRED_WAIVERS) and document:
        return State.VIOLATED
    return State.UNUSABLE if ended.code == ExitCode.USAGE or codes & _REASON_CODES else State.FAILED


_REASON_CODES = {code for code, *_ in _REASONS}


def _messages(document: Mapping[str, Any]) -> Iterator[str]:
    """Texts in which a command reports errors."""
    yield from (str(one) for one in document.get("errors") or ())
    for one in document.get("problems") or ():
        yield f"{one.get('rule')} {one.get('fix')}"


def _problems(ended: Ended, document: Mapping[str, Any] | None, messages: list[str]) -> list[dict[str, Any]]:
    text = "\n".join(messages)
    known = (one for one in _REASONS if one[1].search(text))
    found = [{"code": code, "path": "", "rule": rule, "fix": fix} for code, _, rule, fix in islice(known, 1)]
    if ended.timed_out:
        rule = f"had not ended after {ended.seconds:.0f} s"
        fix = "Check the backend and the network of this client, or raise limits.minutes."
        found.append({"code": "command-timed-out", "path": "", "rule": rule, "fix": fix})
    if document is not None and document.get("problems"):
        found += [{key: str(one.get(key) or "") for key in _KEYS} for one in document["problems"]]
    elif document is not None:
        errors = document.get("errors") or ()
        found += [{"code": "engine-error", "path": "", "rule": str(one), "fix": ""} for one in errors]
    elif not found:
        lines = [line.strip() for line in ended.log.splitlines() if line.strip()]
        rule = f"ended with code {ended.code} without a result: {lines[-1] if lines else 'no output'}"
        fix = "Its log has more."
        found.append({"code": "command-without-result", "path": "", "rule": rule, "fix": fix})
    return found
