"""Messages of failed checks and refusals: a violated rule with its id, or a type that is not emulated."""

import difflib
from collections.abc import Iterable

from infra.errors import MAY_REPLACE
from rehearsal.core.model import CheckFailure, RefusalError
from rehearsal.core.rules.model import Violation


def reason(id: str, violation: Violation) -> str:
    """The reason of a failed check: `[AWS-EC2-001] message. fix`."""
    code = f"{violation.code}: " if violation.code else ""
    return " ".join(
        part for part in (f"[{id}]", f"{code}{_sentence(violation.message)}", violation.fix) if part
    )


def refusal(id: str, violation: Violation, code: str) -> RefusalError:
    """The refusal of a create or update: the property at fault, and the service's code, by default `code`."""
    place = f" (property {violation.path})" if violation.path else ""
    message = f"[{id}] {_sentence(violation.message + place)}"
    return RefusalError(violation.code or code, message, violation.fix)


def may_replace(paths: Iterable[str]) -> str:
    """The warning beside an update that may be a replacement."""
    return f"{MAY_REPLACE}: it is not known whether a change of {', '.join(paths)} replaces the resource."


def unknown_type(package: str, version: str, token: str) -> CheckFailure:
    """The failed check of a type that a provider does not have."""
    return CheckFailure("", f"pulumi-{package} {version} has no type {token}")


def unknown_function(token: str, wanted: str, emulated: Iterable[str], file: str) -> RefusalError:
    """The refusal of a function that is not emulated, with those whose names are close to `wanted`."""
    known = sorted(emulated)
    near = difflib.get_close_matches(wanted, known, n=3) or known[:5]
    return RefusalError(
        "NotEmulated",
        f"the rehearsal does not know the function {token}.",
        f"Emulated are for example {', '.join(near) or 'none'}. It finds one resource of the program, or of "
        "`trainstack rehearse seed`, whose type it names; else take the value from a setting in the "
        f"rehearsal, or add the function in {file}.",
    )


def _sentence(message: str) -> str:
    return message if message.endswith((".", "!", "?")) else f"{message}."
