"""Stack files with faults: shipped files that a seeded generator has changed in one to three places.

Changes of the tree put another value, key or item anywhere; changes of the text are slips of a hand, and YAML
that stack files do not use. Equal seeds give equal files.
"""

import datetime
import functools
import io
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ruamel.yaml import YAML

from infra.stackspec.json_schema import stack_file_schema
from infra.stackspec.layers import PROFILES_FOLDER
from infra.stackspec.load import CONFIG

Path = tuple[Any, ...]

# fmt: off
_VALUES: Final[Sequence[Any]] = (
    None, True, False, 0, 1, -1, 3, 2**63, 10**30, 1.35, 1e-9, 1e300, float("nan"), float("inf"),
    "", " ", "x", "null", "1.35", "0", "-", "ü", "a" * 300, "a\nb", "\u200b", "{}", "../..", "${HOME}", "%s",
    "198.51.100.7", "10.0.0.0/33", "999.1.1.1/24", "0.0.0.0/0", "10.0.0.1/16", "::1/64", "10.0.0.0/31",
    "us-east-1a", "us-central1-a", "eu-west-1", "p4d.24xlarge", "a3-megagpu-8g", "ml.g6.xlarge", "on_demand",
    "2027-02-30", "25:61", "0 0 31 2 *", "* * * * *", "a@b", "arn:aws:iam::1:role/x", "user:a@b.c",
    datetime.date(2027, 3, 31), datetime.datetime(2027, 3, 31, 1, 2, 3), b"bytes",
    [], {}, [None], [[]], [{}], {"": 1}, {"kind": None}, {"kind": "spot"}, {"kind": ["spot"]}, {1: 2},
    [{"name": None}], [{"name": "x"}], [{"name": "x"}, {"name": "x"}], {"name": ["x"]}, {"remove": True},
)
_KEYS: Final[Sequence[Any]] = (
    "", "x", "kind", "name", "remove", "zones", "gpus", 1, 1.5, True, None, "a.b", "a[0]",
)
_TEXT: Final[Sequence[str]] = (
    "\t", ":", ": ", "- ", "{", "}", "[", "]", "&a ", "*a", "!", "|", ">", "%", "@", "`", "#", "'", '"', ",",
    "?", "<<: *a", "&a [*a]", "!!set {a}", "!!omap [a: 1]", "!!binary aGk=", "!!timestamp 2027-02-30", "!x y",
    "\ufeff", "2027-02-30", "2027-13-01 99:99:99", "0o9", "0x", "1_000", "012", "1e", ".inf", "~", "yes",
    "---\n", "...\n",
)
# fmt: on


def mutated(text: str, seed: str) -> bytes:
    """The text of a stack file with one to three changes."""
    chance = random.Random(seed)
    of_text = [chance.random() < 1 / 4 for _ in range(chance.choice((1, 1, 2, 3)))]
    for change in sorted(of_text):  # the tree first: a changed text may have none
        text = (_with_other_text if change else _with_other_tree)(text, chance)
    content = text.encode("utf-8", "surrogatepass")
    if chance.random() < 0.02:
        at = chance.randrange(len(content) + 1)
        content = content[:at] + b"\xff\xe9" + content[at:]
    return content


def _with_other_tree(text: str, chance: random.Random) -> str:
    tree = YAML(typ="safe", pure=True).load(text)
    paths = [path for path in _paths(tree) if len(path) > 1]
    if not paths:
        return text
    path = chance.choice(paths)
    holder, key = _at(tree, path[:-1]), path[-1]
    chance.choice(_CHANGES)(holder, key, tree, chance)
    written = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.dump(tree, written)
    return written.getvalue()


def _with_other_text(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    kind = chance.randrange(6)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, lines[at])
    elif kind == 2:
        lines[at] = " " * chance.randint(1, 3) + lines[at]
    elif kind == 3:
        lines[at] = lines[at].replace('"', "").replace("'", "")
    elif kind == 4:
        head, colon, _ = lines[at].partition(": ")
        lines[at] = head + colon + chance.choice(_TEXT)
    else:
        place = chance.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:place] + chance.choice(_TEXT) + lines[at][place + chance.randint(0, 1) :]
    return "\n".join(lines)


def _paths(tree: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(tree, dict):
        children: Iterator[tuple[Any, Any]] = iter(tree.items())
    elif isinstance(tree, list):
        children = iter(enumerate(tree))
    else:
        return
    for key, child in children:
        yield (*path, key)
        yield from _paths(child, (*path, key))


def _at(tree: Any, path: Path) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def _copied(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _copied(value) for key, value in tree.items()}
    return [_copied(value) for value in tree] if isinstance(tree, list) else tree


def _set(holder: Any, key: Any, _: Any, chance: random.Random) -> None:
    holder[key] = _copied(chance.choice(_VALUES))


def _remove(holder: Any, key: Any, _: Any, __: random.Random) -> None:
    del holder[key]


def _add(holder: Any, key: Any, _: Any, chance: random.Random) -> None:
    value = _copied(chance.choice(_VALUES))
    if isinstance(holder, list):
        holder.insert(key, chance.choice((value, _copied(holder[key]))))
    else:
        holder[chance.choice(_KEYS)] = value


def _rename(holder: Any, key: Any, _: Any, chance: random.Random) -> None:
    if isinstance(holder, dict):
        holder[chance.choice(_KEYS)] = holder.pop(key)


def _from_elsewhere(holder: Any, key: Any, tree: Any, chance: random.Random) -> None:
    holder[key] = _copied(_at(tree, chance.choice([*_paths(tree)])))


def _wrap(holder: Any, key: Any, _: Any, chance: random.Random) -> None:
    holder[key] = chance.choice(([holder[key]], {"name": holder[key]}, {"kind": holder[key]}))


def _edit(holder: Any, key: Any, _: Any, chance: random.Random) -> None:
    value = holder[key]
    if isinstance(value, bool) or value is None:
        holder[key] = str(value)
    elif isinstance(value, int | float):
        holder[key] = chance.choice((-value, value * 1000, value / 3, str(value), value + 1, value - 1))
    elif isinstance(value, str) and value:
        at = chance.randrange(len(value))
        holder[key] = chance.choice(
            (
                value[:at] + value[at + 1 :],
                value[:at] + value[at:] * 2,
                value.upper(),
                value[:at] + "é" + value[at:],
            )
        )


def _as_in_another_file(holder: Any, key: Any, tree: Any, chance: random.Random) -> None:
    """A value of the right type, as a rule: what a key has in another file, or a choice of the schema."""
    known = _known()
    if isinstance(holder, dict) and chance.random() < 0.2:
        key = chance.choice([*known])
    values = known.get(key if isinstance(holder, dict) else "zones")
    if values:
        holder[key] = _copied(chance.choice(values))
    else:
        _edit(holder, key, tree, chance)


@functools.cache
def _known() -> dict[Any, list[Any]]:
    """Values by key: those of all shipped files, and the choices of the schema."""
    found: dict[Any, list[Any]] = {}
    for file in sorted((*CONFIG.glob("*.yaml"), *PROFILES_FOLDER.glob("*.yaml"))):
        tree = YAML(typ="safe", pure=True).load(file.read_text())
        for path in _paths(tree):
            if isinstance(path[-1], str):
                found.setdefault(path[-1], []).append(_at(tree, path))
    schema = stack_file_schema()
    for path in _paths(schema):
        if (path[-1] == "enum" and len(path) > 1) or path[-1] == "const":
            choices = _at(schema, path)
            found.setdefault(path[-2], []).extend(choices if isinstance(choices, list) else [choices])
    return found


_CHANGES: Final[Sequence[Callable[[Any, Any, Any, random.Random], None]]] = (
    *(_set, _set, _remove, _add, _rename, _from_elsewhere, _wrap, _edit, _edit, *(_as_in_another_file,) * 5),
)
