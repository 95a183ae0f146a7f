"""Write documents as readable YAML or JSON (pure; the standard library has no YAML)."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

# Text that every YAML reader takes as a string without quotes: begins with a letter, has no special
# characters, and is no keyword of YAML 1.1.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./@-]*( [A-Za-z0-9_./@-]+)*")
_PAIR = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}")
# A longer key needs the form with a question mark (YAML 1.2.2, section 7.4.2).
KEY_LIMIT = 1024
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"])


def yaml(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return YAML documents; mappings keep their order."""
    return "---\n".join("\n".join(_block(document, "")) + "\n" for document in documents)


def readable_json(document: Any) -> str:
    """JSON, indented."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _block(value: Any, indent: str) -> list[str]:
    lines: list[str] = []
    if isinstance(value, Mapping):
        for key, item in value.items():
            written = _scalar(key)
            if len(written) > KEY_LIMIT:
                lines.append(f"{indent}? {written}")
                written = ""
            lines += _entry(f"{indent}{written}:", item, indent + "  ")
        return lines
    for item in value:
        if isinstance(item, Mapping) and item:
            inner = _block(item, indent + "  ")
            lines += [f"{indent}- {inner[0].lstrip()}", *inner[1:]]
        elif isinstance(item, list | tuple) and item:
            lines += [f"{indent}-", *_block(item, indent + "  ")]
        else:
            lines.append(f"{indent}- {_scalar(item)}")
    return lines


def _entry(head: str, item: Any, indent: str) -> list[str]:
    if isinstance(item, Mapping | list | tuple) and item:
        return [head, *_block(item, indent)]
    if isinstance(item, str) and _shown_as_lines(item):
        return [f"{head} |", *(f"{indent}{line}" for line in item.splitlines())]
    return [f"{head} {_scalar(item)}"]


def _shown_as_lines(text: str) -> bool:
    """Report whether a text is better readable as a block of lines that preserves it exactly."""
    lines = text.splitlines()
    return (
        len(lines) > 1
        and text == "\n".join(lines) + "\n"
        and all(line == line.rstrip() and line.isprintable() for line in lines)
        and lines[0] != ""
        and lines[-1] != ""
        and not lines[0].startswith(" ")
    )


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else _PAIR.sub(_one_character, json.dumps(value))
    if isinstance(value, tuple):
        return "[]"
    written = json.dumps(value, allow_nan=False)
    # YAML 1.1 reads 1e+16 as a text: its numbers with an exponent have a point.
    exponent = isinstance(value, float) and "e" in written and "." not in written
    return written.replace("e", ".0e") if exponent else written


def _one_character(pair: re.Match[str]) -> str:
    """Return a character outside the basic plane, which JSON escapes as two and YAML as one."""
    character = str(json.loads('"' + pair[0] + '"'))
    return f"\\U{ord(character):08x}"
