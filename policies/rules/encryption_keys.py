"""Customer-managed encryption keys."""

from typing import Any

from policies.resource import Resource, UndeterminedError, is_unknown

_KEYS = ("aws:kms/key:Key::", "aws:kms/replicaKey:ReplicaKey::", "aws:kms/externalKey:ExternalKey::")
_ALIASES = ("aws:kms/alias:Alias::", "gcp:kms/cryptoKey:CryptoKey::")


def is_own_key(owner: Resource, property: str, value: Any) -> bool:
    """Return whether `value`, found in `property` of `owner`, is a key that the program chose.

    A service writes the ARN of its own key into an unset property, so only inputs of the program count. An
    unknown value counts if it comes from a key. Raises UndeterminedError if it comes from another resource,
    or if the origin is unknown. A source without programs may still report that a key is customer-managed.
    """
    if is_unknown(value):
        sources = owner.references.get(property, ())
        return any(kind in urn for urn in sources for kind in (*_KEYS, *_ALIASES)) or bool(value)
    if not isinstance(value, str) or not value or "alias/aws/" in value:
        return False
    if owner.asked is None and property in owner.chosen:
        return owner.chosen[property]
    if owner.asked is None and owner.raw(property) is value:
        raise UndeterminedError(f"{property}: it is not known whether the key is customer-managed")
    return owner.asked is None or property in tuple(owner.asked)
