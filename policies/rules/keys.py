"""Whether data is encrypted with a key that the team owns."""

from typing import Any

from policies.resource import Resource, is_unknown

_KEYS = ("aws:kms/key:Key::", "aws:kms/replicaKey:ReplicaKey::", "aws:kms/externalKey:ExternalKey::")
_ALIASES = ("aws:kms/alias:Alias::", "gcp:kms/cryptoKey:CryptoKey::")


def is_own_key(owner: Resource, property: str, value: Any) -> bool:
    """Whether `value`, which stands somewhere in `property` of `owner`, names a key that the program chose.

    A service writes the ARN of its own key there when nobody chooses one, so in a source that tells which
    properties the program set, only those count. An unknown value counts where it comes from a key.
    """
    if is_unknown(value):
        sources = owner.references.get(property, ())
        return any(kind in urn for urn in sources for kind in (*_KEYS, *_ALIASES)) or bool(value)
    if not isinstance(value, str) or not value or "alias/aws/" in value:
        return False
    return not owner.references or property in owner.references
