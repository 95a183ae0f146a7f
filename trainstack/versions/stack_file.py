"""Write versions into a stack file without changing anything else in it."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.scalarstring import DoubleQuotedScalarString
from ruamel.yaml.util import load_yaml_guess_indent

_WIDTH = 4096  # no line is wrapped


def update(
    path: Path,
    addons: Mapping[str, str],
    node_image: str | None,
    today: datetime.date,
    *,
    kubernetes: str | None = None,
) -> None:
    """Pin these versions under `on` and `layout` of the spec, each with a comment that has the date."""
    text = path.read_text(encoding="utf-8")
    _, sequence, offset = load_yaml_guess_indent(text)
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    yaml.indent(mapping=2, sequence=sequence or 2, offset=offset or 0)
    content = yaml.load(text)
    spec = content["config"]["trainstack:spec"]
    if kubernetes:
        quoted = {"kubernetes_version": DoubleQuotedScalarString(kubernetes)}  # 1.40 is also a number
        _pin(spec.setdefault("layout", CommentedMap()), quoted, today, "next minor version")
    on = spec.setdefault("on", CommentedMap()) if addons or node_image else {}
    if addons:
        _pin(on.setdefault("addon_versions", CommentedMap()), addons, today)
    if node_image:
        _pin(on, {"node_image": node_image}, today)
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(content, file)


def _pin(into: Any, versions: Mapping[str, str], today: datetime.date, what: str = "newest") -> None:
    for name, version in versions.items():
        into[name] = version
        into.yaml_add_eol_comment(f"{what} on {today}, by trainstack versions", name, column=0)
