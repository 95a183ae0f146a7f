"""Whether data is encrypted with a key that the team owns."""

from typing import Any

from policies.resource import Resource, UndeterminedError, is_unknown

_KEYS = ("aws:kms/key:Key::", "aws:kms/replicaKey:ReplicaKey::", "aws:kms/externalKey:ExternalKey::")
_ALIASES = ("aws:kms/alias:Alias::", "gcp:kms/cryptoKey:CryptoKey::")


def is_own_key(owner: Resource, property: str, value: Any) -> bool:
    """Whether `value`, which stands somewhere in `property` of `owner`, names a key that the program chose.

    A service writes the ARN of its own key into a property that nobody sets, so only what the program asked
    for counts. An unknown value counts where it comes from a key. Raises UndeterminedError where it comes
    from elsewhere, or where no source says who chose it. Where the source knows no program, it may still know
    the key: one that somebody made was chosen.
    """
    if is_unknown(value):
        sources = owner.references.get(property, ())
        return any(kind in urn for urn in sources for kind in (*_KEYS, *_ALIASES)) or bool(value)
    if not isinstance(value, str) or not value or "alias/aws/" in value:
        return False
    if owner.asked is None and property in owner.chosen:
        return owner.chosen[property]
    if owner.asked is None and owner.raw(property) is value:
        raise UndeterminedError(f"{property}: whether somebody chose the key, or the service")
    return owner.asked is None or property in tuple(owner.asked)
