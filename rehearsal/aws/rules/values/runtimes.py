"""Runtimes of Lambda functions: a list that grows, and days from which AWS refuses a runtime."""

import datetime
import re
from collections.abc import Iterator

from rehearsal.aws import values
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import text
from rehearsal.core.model import Properties
from rehearsal.core.rules import open_lists
from rehearsal.core.rules.model import Violation
from rehearsal.core.rules.open_lists import ListVerdict

_FUNCTION = "aws:lambda/function:Function"
_LIFE = "AWS Lambda Developer Guide, Runtimes (deprecation), as in cfn-lint's LmbdRuntimeLifecycle"


def _verdict(runtime: str) -> ListVerdict:
    """The verdict on a runtime: `python3.15` is a later version of those of python."""
    known = values.runtimes()
    if runtime in known:
        return ListVerdict.KNOWN
    kind, number = _parts(runtime)
    line = [_parts(one)[1] for one in known if _parts(one)[0] == kind]
    return open_lists.version(number, line) if line and number else ListVerdict.WRONG


def _parts(runtime: str) -> tuple[str, str]:
    kind = re.sub(r"\d.*", "", runtime)
    return kind, runtime.removeprefix(kind)


@BOOK.rule_around("AWS-LAMBDA-001", _FUNCTION, source=f"{values.source()}: enum Runtime; {_LIFE}")
def runtime_is_served(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A runtime is one of Lambda's, and not retired for new functions or for updates."""
    runtime = text(inputs.get("runtime"))
    if runtime is None or _verdict(runtime) is ListVerdict.NEWER:
        return
    before = site.current("lambda/function:Function")
    row = values.runtimes().get(runtime)
    if row is None:
        near = open_lists.nearest(runtime, list(values.runtimes()))
        yield _refusal(f"{runtime} is not a runtime", f"Did you mean {near}?")
        return
    same = before is not None and before.inputs == inputs
    day = row.get("create" if before is None else "update", "")
    if day and not same and day <= datetime.datetime.now(datetime.UTC).date().isoformat():
        action = "creating" if before is None else "updating"
        why = f"The runtime parameter of {runtime} is no longer supported for {action} functions since {day}"
        yield _refusal(why, f"Use {row['successor']}." if "successor" in row else "")


@BOOK.rule_around("AWS-LAMBDA-002", _FUNCTION, source=f"{values.source()}: enum Runtime", advice=True)
def runtime_is_newer(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A runtime is one that the list of Lambda's runtimes has."""
    runtime = text(inputs.get("runtime"))
    if runtime is not None and _verdict(runtime) is ListVerdict.NEWER:
        yield Violation("runtime", f"{runtime} may be newer than the list of runtimes, which lacks it")


def _refusal(message: str, fix: str) -> Violation:
    return Violation("runtime", message, fix, "InvalidParameterValueException")
