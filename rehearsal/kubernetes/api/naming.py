"""Auto-generated names of objects, as in the provider."""

import hashlib
import secrets

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.kubernetes.diffs import AUTONAMED, annotations


def unique_suffix(seed: bytes, length: int) -> str:
    """`length` hex digits; the same for the same seed, random without one."""
    return hashlib.sha256(seed).hexdigest()[:length] if seed else secrets.token_hex(length)[:length]


def assign_name(logical: str, seed: bytes, old: Properties | None, new: Properties) -> Properties:
    """`new` with its own name, the previously generated one, or a new one marked as generated."""
    metadata = new.get("metadata")
    if metadata is UNKNOWN:
        return new
    metadata = dict(metadata or {})
    if metadata.get("name") or metadata.get("name") is UNKNOWN or metadata.get("generateName"):
        return new
    was = (old or {}).get("metadata") or {}
    if annotations(old or {}).get(AUTONAMED) == "true":
        metadata["name"] = was["name"]
    elif old:
        return new
    else:
        metadata["name"] = f"{logical}-{unique_suffix(seed, 8)}"
    kept = metadata.get("annotations")
    metadata["annotations"] = {**(kept if isinstance(kept, dict) else {}), AUTONAMED: "true"}
    return {**new, "metadata": metadata}
