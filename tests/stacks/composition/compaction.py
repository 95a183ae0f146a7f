"""Compacts the lines of a difference, so that shared changes of several resources are listed once.

Numbered names (`vpc1`, `vpc2`) become one line (`vpc{1,2}`), equal changes of several resources one group,
and changes below one parent one line. `pod.` stands for the path of a pod template.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

_WAITS = re.compile(r"~ (\S+ \S+) waits (no longer for|for) (.*)")
_CHANGE = re.compile(r"~ (\S+ \S+) (.*?): (.*)", re.DOTALL)
_POD = re.compile(r"^(?:\S+\.)?template\.(?=(?:spec|metadata)\.)")
_NUMBERED = re.compile(r"([a-z]{2,})(\d+)\b")
_MARK = "\0"
_KIND = re.compile(r"\.(limits|requests)\.")
_ITEM = re.compile(r"^(.*)\[([^\[\]]+)\]$|^(.*)\.([^.\[\]]+)$")


def compact(found: Sequence[str]) -> list[str]:
    """The same differences in fewer lines."""
    listed = [line for line in found if not line.startswith("~ ")]
    waits: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    changes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in found:
        if match := _WAITS.fullmatch(line):
            waits[match[1]][match[2]].append(match[3])
        elif line.startswith("~ ") and (match := _CHANGE.fullmatch(line)):
            changes[_POD.sub("pod.", match[2]), match[3]].append(match[1])
    return [*_by_kind(_numbered(listed)), *_waiting(waits), *_changed(changes)]


def _by_kind(lines: Sequence[str]) -> list[str]:
    """Resources of one kind with the same dependencies as one line."""
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in lines:
        resource, _, awaited = line.partition(" < ")
        kind, _, name = resource.rpartition(" ")
        names[kind, awaited].append(name)
    return [
        f"{kind} {', '.join(found)}" + (f" < {awaited}" if awaited else "")
        for (kind, awaited), found in names.items()
    ]


def _waiting(waits: dict[str, dict[str, list[str]]]) -> Iterable[str]:
    resources: dict[str, list[str]] = defaultdict(list)
    for resource, kinds in waits.items():
        resources["; ".join(f"{kind} {', '.join(_numbered(names))}" for kind, names in kinds.items())].append(
            resource
        )
    for text, names in resources.items():
        yield f"~ {', '.join(_numbered(names))} wait {text}"


def _changed(changes: dict[tuple[str, str], list[str]]) -> Iterable[str]:
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for (path, text), resources in changes.items():
        groups[tuple(dict.fromkeys(resources))].append(f"{path}: {text}")
    for changed, lines in groups.items():
        head, below = f"~ {', '.join(_numbered(changed))}", _below_one_parent(_numbered(_both(lines)))
        yield from [f"{head} {below[0]}"] if len(below) == 1 else [head, *(f"    {line}" for line in below)]


def _both(lines: Sequence[str]) -> list[str]:
    """Equal limits and requests as one."""
    known = set(lines)
    joined: list[str] = []
    for line in lines:
        match = _KIND.search(line)
        other = match and _KIND.sub(".requests." if match[1] == "limits" else ".limits.", line, count=1)
        if match and other in known:
            if match[1] == "limits":
                joined.append(_KIND.sub(".{limits,requests}.", line, count=1))
        else:
            joined.append(line)
    return joined


def _below_one_parent(lines: Sequence[str]) -> list[str]:
    """Changes of siblings in one line."""
    parents: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        path, _, text = line.partition(": ")
        match = _ITEM.fullmatch(path)
        parent, item = (match[1] or match[3], match[2] or match[4]) if match else ("", path)
        parents[parent].append(f"{item}: {text}")
    return [
        f"{parent}: {'; '.join(items)}" if parent else "; ".join(items) for parent, items in parents.items()
    ]


def _numbered(lines: Sequence[str]) -> list[str]:
    """Lines that differ in one number as one line, at the place of the first."""
    templates: dict[str, list[str]] = {}
    for line in lines:
        template, number = line, ""
        for letters, digits in _NUMBERED.findall(line):
            others = {found for name, found in _NUMBERED.findall(line) if name == letters}
            if len(others) == 1:
                candidate = re.sub(rf"(?<![a-z]){letters}{digits}\b", f"{letters}{_MARK}", line)
                alike = sum(
                    re.sub(rf"(?<![a-z]){letters}\d+\b", f"{letters}{_MARK}", one) == candidate
                    for one in lines
                )
                if alike > 1:
                    template, number = candidate, digits
                    break
        templates.setdefault(template, []).append(number)
    return [
        template.replace(_MARK, f"{{{','.join(numbers)}}}") if any(numbers) else template
        for template, numbers in templates.items()
        for _ in ([0] if any(numbers) else numbers)
    ]
