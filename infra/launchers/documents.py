"""Write documents as readable YAML or JSON (pure)."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml as pyyaml

# Text that every YAML reader takes as a string without quotes: begins with a letter, has no special
# characters, and is no keyword of YAML 1.1. PyYAML itself leaves `y` and `0o10` plain, which others read as
# true and 8.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./@-]*( [A-Za-z0-9_./@-]+)*")
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"])


class _Dumper(pyyaml.SafeDumper):
    """Indents lists below their key, and repeats what occurs twice: anchors are hard to read."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def _text(dumper: _Dumper, text: str) -> pyyaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    style = "|" if text.endswith("\n") else None if plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_multi_representer(str, _text)
_Dumper.add_representer(str, _text)


def yaml(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return YAML documents; mappings keep their order."""
    return pyyaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=10**6)


def readable_json(document: Any) -> str:
    """JSON, indented."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
