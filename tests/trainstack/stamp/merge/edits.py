"""Random edits of YAML texts, line by line, as people make them: each has a token of its own."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

START = """\
# The environment of a client.
name: acme
region: us-east-1 # near the data
budget:
  monthly_usd: 1000
  # Addresses of alarms.
  alert_emails: [a@x.org, b@x.org]
layout:
  # Pools of nodes.
  pools:
    - name: h100
      machine: p5.48xlarge # EFA
      nodes: 2
      purchase: {kind: on_demand, share: 1}
    - name: cpu
      machine: m7i.4xlarge
      nodes: 4
  idle_minutes: 30
data:
  protect: true
  keep:
    days: 7
    # Copies.
    copies: 1
"""
_SCALAR = re.compile(r"^(\s*(?:- )?)(\w+): ([\w.@-]+)((?: +#.*)?)$")
_ENTRY = re.compile(r"^(\s*)(- )?(\w+):")
_FLOW = re.compile(r"^(\s*\w+: )\{(.*)\}((?: +#.*)?)$")


def column(line: str) -> int:
    """The column of an entry, of an item that of its dash."""
    return len(line) - len(line.lstrip())


def entries(lines: list[str]) -> list[int]:
    """Lines at which a key or an item begins."""
    return [number for number, line in enumerate(lines) if _ENTRY.match(line)]


def stop(lines: list[str], at: int) -> int:
    """The end of an entry and of everything below it."""
    depth, end = column(lines[at]), at + 1
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if _ENTRY.match(line):
            if column(line) <= depth:
                break
            end = number + 1
        elif column(line) > depth and _ENTRY.match(lines[at]):
            end = number + 1
        elif column(line) <= depth:
            break
    return end


def siblings(lines: list[str], at: int) -> list[int]:
    """Entries beside one: of the same column, without a shallower line between."""
    depth, found = column(lines[at]), [at]
    for step in (-1, 1):
        number = at + step
        while 0 <= number < len(lines) and (
            not _ENTRY.match(lines[number]) or column(lines[number]) >= depth
        ):
            if _ENTRY.match(lines[number]) and column(lines[number]) == depth:
                found.append(number)
            number += step
    # The first key of an item is on the line of its dash: another column.
    dashes = {bool(re.match(r"\s*- ", lines[number])) for number in found}
    return sorted(found) if len(dashes) == 1 else [at]


def _value(lines: list[str], at: int, token: str) -> None:
    if found := _SCALAR.match(lines[at]):
        if found[2] != "name" or not found[1].strip():
            lines[at] = f"{found[1]}{found[2]}: {token}{found[4]}"
    elif found := _FLOW.match(lines[at]):
        inner = re.sub(r": \w+", f": {token}", found[2], count=1)
        lines[at] = f"{found[1]}{{{inner}}}{found[3]}"


def _comment(lines: list[str], at: int, token: str) -> None:
    lines.insert(at, f"{' ' * column(lines[at])}# {token}")


def _beside(lines: list[str], at: int, token: str) -> None:
    if (found := _SCALAR.match(lines[at])) and not found[4]:
        lines[at] += f"  # {token}"


def _remove(lines: list[str], at: int, token: str) -> None:
    if len(siblings(lines, at)) > 1:
        del lines[at : stop(lines, at)]


def _add(lines: list[str], at: int, token: str) -> None:
    found = _ENTRY.match(lines[at])
    assert found
    indent = " " * column(lines[at])
    new = (
        f"{indent}k{token}: {token}"
        if not found[2]
        else f"{indent}- name: k{token}\n{indent}  nodes: {token}"
    )
    lines[stop(lines, at) : stop(lines, at)] = new.split("\n")


def _add_to_flow(lines: list[str], at: int, token: str) -> None:
    if found := _FLOW.match(lines[at]):
        lines[at] = f"{found[1]}{{{found[2]}, k{token}: {token}}}{found[3]}"


def _move(lines: list[str], at: int, token: str) -> None:
    beside = [one for one in siblings(lines, at) if one > at]
    if beside:
        part = lines[at : stop(lines, at)]
        end = stop(lines, beside[0])
        lines[end:end] = part
        del lines[at : at + len(part)]


def _quote(lines: list[str], at: int, token: str) -> None:
    if (found := _SCALAR.match(lines[at])) and re.fullmatch(r"[a-z][a-z0-9-]*", found[3]):
        lines[at] = f'{found[1]}{found[2]}: "{found[3]}"{found[4]}'


KINDS: Mapping[str, Callable[[list[str], int, str], None]] = {
    "value": _value,
    "comment": _comment,
    "comment beside": _beside,
    "remove": _remove,
    "add": _add,
    "add to a mapping on one line": _add_to_flow,
    "move": _move,
    "quote": _quote,
}


def edited(text: str, edits: list[tuple[str, int]], by: str) -> str:
    """The text after edits, each a kind and a place; `by` begins their tokens."""
    lines = text.splitlines()
    for number, (kind, place) in enumerate(edits):
        places = entries(lines)
        KINDS[kind](lines, places[place % len(places)], f"{by}{number}")
    found = "\n".join(lines) + "\n"
    yaml.safe_load(found)
    return found


def values(text: str) -> dict[tuple[str, ...], Any]:
    """Every value by path; items of lists by name; mappings and lists as their kind."""
    return dict(_flat((), yaml.safe_load(text)))


def _flat(path: tuple[str, ...], value: Any) -> Any:
    if isinstance(value, dict):
        yield path, "mapping"
        for key, one in value.items():
            yield from _flat((*path, str(key)), one)
    elif isinstance(value, list) and all(isinstance(one, dict) for one in value):
        yield path, "items"
        for one in value:
            yield from _flat((*path, one["name"]), one)
    else:
        yield path, value if isinstance(value, list) else str(value)


def comments(text: str) -> set[str]:
    """The comments of a text."""
    return {found.strip() for found in re.findall(r"#(.*)", text)}
