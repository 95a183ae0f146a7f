"""Files of a client's folder that decide how the policies judge a stack."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from policies.configuration import environments
from trainstack.stamp import lock
from trainstack.stamp.client import AUDIT, WAIVERS

_PACKS = "policies/*.json"


@dataclass(frozen=True)
class PolicySources:
    """The files for one stack; None where the folder has no such file."""

    config: Path | None
    environment: str | None
    """The part of the configuration for the stack; None for a file without such parts."""
    waivers: Path | None
    notes: tuple[str, ...]
    """What the stack is judged without, with the file that lacks it."""


def of(stack: str, folder: Path) -> PolicySources:
    """The files that the stack's settings of the policy pack name, or else those of a new client.

    A stack without settings, such as a copied one, is judged with none. Raises UserError for a configuration
    that cannot be read.
    """
    named = _named(folder).get(stack, {})
    names = {key: named.get(key, usual) for key, usual in (("config", AUDIT), ("waivers", WAIVERS))}
    found = {key: folder / name if (folder / name).is_file() else None for key, name in names.items()}
    notes = [f"there is no {names[key]}" for key, path in found.items() if path is None]
    config, environment = found["config"], None
    if config is not None and (known := environments(config)):
        environment = named.get("environment", stack)
        if environment not in known:
            notes.append(f"{names['config']} has no settings of {environment}")
            config = environment = None
    return PolicySources(config, environment, found["waivers"], tuple(notes))


def others(folder: Path) -> Iterator[str]:
    """Names of the files that settings of the policy pack name, wherever they are in the folder."""
    for named in _named(folder).values():
        yield from (named[key] for key in ("config", "waivers") if key in named)


def _named(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Configuration, environment and waivers by stack: an environment has the name of its stack."""
    found: dict[str, Mapping[str, str]] = {}
    for path in sorted(folder.glob(_PACKS)):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))["audit"]
            texts = {key: one for key, one in content.items() if isinstance(one, str)}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue  # the policy pack refuses it
        inside = all(lock.is_inside(texts[key]) for key in ("config", "waivers") if key in texts)
        if inside and "environment" in texts:
            found.setdefault(texts["environment"], texts)
    return found
