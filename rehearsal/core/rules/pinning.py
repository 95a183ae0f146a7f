"""Programs that pin another version of a provider than the rehearsal has.

The engine asks for exactly the pinned version (`SelectCompatiblePlugin` in
sdk/go/common/workspace/plugins.go of Pulumi 3.259.0), and the emulated provider answers for each
(`projects.workspace`). Types and rules are those of the installed SDK, so failures by them are qualified.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from packaging.version import InvalidVersion, Version

from rehearsal.core.model import Call, CheckFailure


def note(package: str, pinned: str, installed: str) -> str:
    """The note for a program that pins another version; empty for the installed one and for any."""
    if not pinned or pinned.removeprefix("v") == installed:
        return ""
    return f"the program pins {package} {pinned}; the rehearsal's rules are those of {installed}"


def renames(pinned: str, installed: str) -> bool:
    """Return whether a pinned version can have names that the installed one lacks.

    Minor versions only add names (semver.org, 7 and 8): those of a newer version, and of another major one.
    """
    try:
        asked, here = Version(pinned), Version(installed)
    except InvalidVersion:
        return bool(pinned)
    return asked.major != here.major or asked > here


def judged(call: Call, installed: str, failures: Iterable[CheckFailure]) -> list[CheckFailure]:
    """The failures of a check by schema, for the version that the program pins.

    A name that only the installed SDK lacks is not refused: a warning says that it is not judged. Other
    failures name both versions.
    """
    pinned = call.instance.pinned
    if not pinned or not renames(pinned, installed):
        return list(failures)
    return list(_judged(call, note(call.instance.package, pinned, installed), failures))


def _judged(call: Call, why: str, failures: Iterable[CheckFailure]) -> Iterator[CheckFailure]:
    for one in failures:
        if one.unknown:
            call.log("warning", f"{one.property} is not judged: {one.reason} ({why})")
        else:
            yield replace(one, reason=f"{one.reason} ({why})")
