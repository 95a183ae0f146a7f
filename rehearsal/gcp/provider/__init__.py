"""Rules of the Google provider's resource types, read out of its source by `tools/gcp_provider.py`.

`facts.json` holds, by type and by property path without indices:

- `words` (allowed values; `words_any_case`), `ranges` of numbers (lowest and highest; null is none),
  `pattern` of a text (found anywhere in it), `keys` (the same for the keys of a map), `length` of a text,
  `items` of a list, `form` (a kind of text that no pattern describes); `blank`: an empty text is accepted
  besides. A path that ends with `[]` is about the items of a list.
- `conflicts` and `partners`: paths that must not and that must be given with one.
- `exactly_one`, `some`: groups `of` paths, where the object `within` is given.
- `service_words`: the values of properties that only the service judges, from `services.json`: discovery
  documents, by `tools/gcp_discovery.py`.

`lists.json`, by `tools/gcp_lists.py`, holds what grows: machine types, zones, accelerators, predefined roles.
`changes.json` says what a change of each type does (`core.emulation.changes`).
"""

import functools
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.rules.open_lists import Machines

FILE, SERVICES, LISTS = (
    Path(__file__).with_name(name) for name in ("facts.json", "services.json", "lists.json")
)


@functools.cache
def _document() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


@functools.cache
def facts() -> Mapping[str, Mapping[str, Any]]:
    """The facts of each type, such as `container/cluster:Cluster`."""
    types: dict[str, dict[str, Any]] = _document()["types"]
    for token, words in json.loads(SERVICES.read_text(encoding="utf-8"))["types"].items():
        types[token]["service_words"] = words
    return types


def source() -> str:
    """The repository and commit that the facts are read from."""
    head = _document()
    return f"{head['source']}@{head['commit'][:8]} ({head['date']})"


@functools.cache
def machines() -> Machines:
    """The machine types of Compute Engine."""
    families = {family: tuple(sizes.split()) for family, sizes in _lists()["machines"].items()}
    return Machines(families, sign="-")


@functools.cache
def zones() -> Mapping[str, tuple[str, ...]]:
    """Region -> the letters of its zones."""
    return {region: tuple(letters.split()) for region, letters in _lists()["zones"].items()}


@functools.cache
def roles() -> Collection[str]:
    """Predefined roles, such as `roles/storage.admin`."""
    rows = _lists()["roles"].items()
    named = {f"roles/{service}.{rest}" for service, rests in rows for rest in rests.split()}
    return named | {f"roles/{service}" for service, rests in rows if rests.startswith(" ") or not rests}


def lists_source() -> str:
    """The repositories that the lists are read from."""
    return str(_lists()["source"])


@functools.cache
def _lists() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(LISTS.read_text(encoding="utf-8"))
    return found
