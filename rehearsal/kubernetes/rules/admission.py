"""Admission of objects by the rule book, with the API server's errors."""

from collections.abc import Sequence

from rehearsal.core.model import CheckFailure, Properties, RefusalError
from rehearsal.core.rules.model import Rule, Violation
from rehearsal.kubernetes.kinds import parse
from rehearsal.kubernetes.rules.book import ClusterView, alone, around
from rehearsal.kubernetes.rules.objects.custom import definition

Broken = tuple[Rule[ClusterView], Violation]


def check(
    token: str, inputs: Properties, *, custom: bool, reported: Sequence[CheckFailure]
) -> list[CheckFailure]:
    """Violations of an object by itself, before anything is created.

    Excludes fields at or below a path that already has an error.
    """
    wrong = tuple(failure.property for failure in reported)
    below = tuple(f"{path}{sign}" for path in wrong for sign in ".[")
    return [
        CheckFailure(violation.path, f"{violation.message} ({rule.id}){_then(violation.fix)}")
        for rule, violation in alone(token, inputs, custom=custom)
        if violation.path not in wrong and not violation.path.startswith(below)
    ]


def admit(token: str, inputs: Properties, cluster: ClusterView, *, custom: bool) -> list[str]:
    """Warnings about an object that is accepted but will not work.

    Raises RefusalError with every violation of a new or changed object.
    """
    found = [
        *alone(token, inputs, custom=custom),
        *around(token, inputs, cluster, custom=custom),
    ]
    refused = [(rule, violation) for rule, violation in found if not violation.advice]
    if refused:
        raise _refusal(token, inputs, refused)
    return [f"{violation.message} ({rule.id}){_then(violation.fix)}" for rule, violation in found]


def no_pods(token: str, inputs: Properties, cluster: ClusterView) -> str:
    """The reason why an accepted object gets no pods, empty when it does."""
    found = (violation.message for _, violation in around(token, inputs, cluster) if violation.advice)
    return next(found, "")


def breaks(token: str, inputs: Properties, cluster: ClusterView, *, custom: bool) -> bool:
    """Return whether an object violates rules about other objects, which may change during a wait."""
    return any(not violation.advice for _, violation in around(token, inputs, cluster, custom=custom))


def has_schema(token: str, cluster: ClusterView) -> bool:
    """Return whether the schema of a custom object is known."""
    kind = parse(token)
    return definition({"apiVersion": kind.api_version, "kind": kind.kind}, cluster) is not None


def _refusal(token: str, inputs: Properties, found: Sequence[Broken]) -> RefusalError:
    """One error: invalid fields come before admission errors, as in the API server."""
    kind = parse(token)
    group = f".{kind.group}" if kind.group else ""
    name = (inputs.get("metadata") or {}).get("name")
    coded = [(rule, violation) for rule, violation in found if violation.code]
    plain = [(rule, violation) for rule, violation in found if not violation.code]
    missing = [pair for pair in coded if pair[1].code == "NoMatch"]
    if missing or not plain:
        rule, violation = (missing or coded)[0]
        return RefusalError(violation.code, f"{violation.message} ({rule.id})", violation.fix)
    texts = [f"{violation.path}: {violation.message} ({rule.id})" for rule, violation in plain]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    fixes = dict.fromkeys(violation.fix for _, violation in plain if violation.fix)
    return RefusalError("Invalid", f'{kind.kind}{group} "{name}" is invalid: {text}', " ".join(fixes))


def _then(fix: str) -> str:
    return f" {fix}" if fix else ""
