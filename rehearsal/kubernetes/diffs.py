"""Diff of an update, as in the provider: the live object, pruned, compared with new inputs."""

import base64
import re
from collections.abc import Mapping
from typing import Any

from rehearsal.core import properties
from rehearsal.core.model import Diff, Properties
from rehearsal.kubernetes.kinds import ObjectKind, replaces

REPLACE_UNREADY = "pulumi.com/replaceUnready"
AUTONAMED = "pulumi.com/autonamed"


def annotations(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Annotations of an object's inputs, empty when absent or unknown."""
    metadata = inputs.get("metadata") or {}
    found = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def diff(
    kind: ObjectKind, old_inputs: Properties, live: Properties, new: Properties, config: Mapping[str, Any]
) -> Diff:
    """Differences between `new` and the live object, restricted to previously set fields."""
    before = prune(normalized(kind, live), normalized(kind, old_inputs))
    changed = tuple(properties.changed(before, normalized(kind, new)))
    fixed = _fixed(kind, live, config)
    replacing = tuple(path for path in changed if _touches(path, fixed))
    return Diff(changed, replacing, bool(replacing) and keeps_name(live, new))


def keeps_name(live: Properties, new: Properties) -> bool:
    """Return whether the replacement must have the same name, so that the old object is deleted first."""
    old, fresh = live.get("metadata") or {}, new.get("metadata") or {}
    if annotations(new).get(AUTONAMED) == "true" or not fresh.get("name"):
        return False
    same_place = (old.get("namespace") or "default") == (fresh.get("namespace") or "default")
    return fresh.get("name") == old.get("name") and same_place


def normalized(kind: ObjectKind, inputs: Properties) -> Properties:
    """Inputs as the API server stores them: `stringData` of a Secret becomes base64 `data`."""
    kept = {name: value for name, value in inputs.items() if name not in ("status", "__inputs")}
    text = kept.get("stringData")
    if kind == ObjectKind("", "v1", "Secret") and isinstance(text, Mapping):
        del kept["stringData"]
        encoded = {
            name: base64.b64encode(value.encode()).decode() if isinstance(value, str) else value
            for name, value in text.items()
        }
        kept["data"] = {**(kept.get("data") or {}), **encoded}
    return kept


def prune(live: Any, shape: Any) -> Any:
    """The fields of `live` that are in `shape`; fields added by the cluster are left out."""
    if isinstance(live, Mapping) and isinstance(shape, Mapping):
        return {name: prune(live[name], shape[name]) for name in shape if name in live}
    if isinstance(live, list) and isinstance(shape, list) and len(live) == len(shape):
        return [prune(item, part) for item, part in zip(live, shape, strict=True)]
    return live


def _fixed(kind: ObjectKind, live: Properties, config: Mapping[str, Any]) -> tuple[str, ...]:
    fixed = replaces(kind)
    switch = {"ConfigMap": "enableConfigMapMutable", "Secret": "enableSecretMutable"}.get(kind.kind)
    mutable = switch is not None and str(config.get(switch, False)).lower() == "true"
    if mutable and not live.get("immutable"):
        return tuple(path for path in fixed if path not in ("data", "binaryData", "stringData"))
    return fixed


def _touches(path: str, fixed: tuple[str, ...]) -> bool:
    plain = re.sub(r"\[\d+\]", "", path)
    return any(plain == prefix or re.match(re.escape(prefix) + r"[.\[]", plain) for prefix in fixed) or any(
        prefix.startswith(plain + ".") for prefix in fixed
    )
