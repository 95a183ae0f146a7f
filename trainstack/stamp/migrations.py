"""Steps that bring files of an older version to the form of this one, before they are merged.

A step is applied to the recorded base and to the client's file alike, so that a value of the client moves
with its key. Add one when a field of the spec is renamed or moves, with a case in
tests/trainstack/stamp/test_migrations.py.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from packaging.version import Version

from trainstack.stamp.merge.tree import Block, UnsupportedError, parsed

SPEC_FILES = {"Pulumi.?*.yaml": ("config", "trainstack:spec"), "clients/*.yaml": ()}
"""Files with a spec, by pattern, and the keys above it."""
Path = tuple[str, ...]


@dataclass(frozen=True)
class MigrationStep:
    """A change of the form of specs."""

    name: str
    version: str
    """The first version with the new form."""
    apply: Callable[[str, Path], str]
    """Text and the path of the spec in it; the new text."""


STEPS: Sequence[MigrationStep] = ()
"""In the order of versions. None yet: 0.1.0 is the first version with a lock."""


def pending(version: str, installed: str, steps: Sequence[MigrationStep] = STEPS) -> list[MigrationStep]:
    """The steps from one version to another."""
    return [one for one in steps if Version(version) < Version(one.version) <= Version(installed)]


def migrated(name: str, text: str, steps: Iterable[MigrationStep]) -> str:
    """The text of a file after the steps; of one without a spec unchanged."""
    root = next((root for pattern, root in SPEC_FILES.items() if fnmatch(name, pattern)), None)
    if root is not None:
        for step in steps:
            text = step.apply(text, root)
    return text


def renamed(old: Path, new: str) -> Callable[[str, Path], str]:
    """A step's function that gives the key at a path another name; its value and comments stay."""

    def apply(text: str, root: Path) -> str:
        try:
            block = parsed(text)
        except UnsupportedError:
            return text
        for key in (*root, *old[:-1]):
            entry = block.entries.get(key)
            if entry is None or not isinstance(entry.content, Block):
                return text
            block = entry.content
        entry = block.entries.get(old[-1])
        if entry is None or new in block.entries:
            return text
        lines = text.split("\n")
        lines[entry.line - 1] = lines[entry.line - 1].replace(old[-1], new, 1)
        return "\n".join(lines)

    return apply
