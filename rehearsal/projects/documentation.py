"""Write docs/reference/emulation.md from the tables: `python -m rehearsal.projects.documentation`."""

import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from rehearsal.core.packages import PACKAGES
from rehearsal.core.schema import sdk_version
from rehearsal.projects.coverage import Standing, standing
from rehearsal.projects.sdk_index import resource_types

_ROOT = Path(__file__).resolve().parents[2]
FILE = _ROOT / "docs" / "reference" / "emulation.md"
_HEAD = """# What a rehearsal emulates

<!-- Written by `python -m rehearsal.projects.documentation`; a test compares it with the tables. -->

Every summary of `trainstack rehearse run` names what it knows of each resource type of a program:

| standing | is checked | is guessed |
|---|---|---|
| emulated | properties, rules of the service, references, quotas, replacement, deletion | the rest |
| schema only | names and types of properties, references | ids, outputs, most replacements |
| unknown | nothing: its resources fail, and those of a [seed](../how-to/rehearse.md) are left out | |

A custom kind of Kubernetes is checked against its definition in the cluster, and is counted as schema only.
Former names of a type that its package keeps as an alias are counted, too.
"""


def document() -> str:
    """The page."""
    return "\n".join([_HEAD, *_counts(), *_tables(), *_types()]) + "\n"


def _emulated(package: str) -> list[str]:
    return sorted(one for one in resource_types(package) if standing(one) is Standing.EMULATED)


def _counts() -> Iterator[str]:
    yield from ("| package | emulated | schema only | SDK |", "|---|---|---|---|")
    for package in PACKAGES:
        known, types = _emulated(package), resource_types(package)
        only = sum(standing(one) is Standing.SCHEMA_ONLY for one in types)
        yield f"| {package} | {len(known)} | {only} | {sdk_version(package)} |"
    yield ""


def _tables() -> Iterator[str]:
    yield from ("## Sources", "", "| table | rows | read | source |", "|---|---|---|---|")
    for path in sorted((_ROOT / "rehearsal").glob("*/tables/*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        rows = sum(isinstance(one, dict) for one in content.values())
        place = path.relative_to(_ROOT)
        yield f"| `{place}` | {rows} | {content.get('date', '')} | {content.get('source', '')} |"
    yield ""


def _types() -> Iterator[str]:
    for package in PACKAGES:
        yield from (f"## {package}", "", "| module | emulated types |", "|---|---|")
        modules: defaultdict[str, list[str]] = defaultdict(list)
        for token in _emulated(package):
            modules[token.split(":")[1].partition("/")[0]].append(token.rpartition(":")[2])
        for module, names in modules.items():
            yield f"| {module} | {', '.join(sorted(set(names)))} |"
        yield ""


def main() -> None:
    """Write the page."""
    FILE.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main()
