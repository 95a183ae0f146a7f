"""Grammars of names, labels and keys: each function returns the error of a text, or None.

Source: kubernetes/kubernetes staging/src/k8s.io/apimachinery/pkg/api/validation/{objectmeta,path/name}.go and
kubernetes.io/docs/concepts/overview/working-with-objects/{names,labels}.
"""

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SHARE = re.compile(r"[0-9]+%")
_PORT_NAME = re.compile(r"(?=.{1,15}$)(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def label(value: str) -> str | None:
    """A DNS label (RFC 1123): the names of namespaces, containers and volumes."""
    if len(value) <= 63 and _LABEL.fullmatch(value):
        return None
    return (
        "a lowercase RFC 1123 label must consist of at most 63 lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character"
    )


def label_1035(value: str) -> str | None:
    """A DNS label (RFC 1035), which starts with a letter: the names of Services."""
    if len(value) <= 63 and _LABEL_1035.fullmatch(value):
        return None
    return (
        "a DNS-1035 label must consist of at most 63 lower case alphanumeric characters or '-', start with a "
        "letter, and end with an alphanumeric character"
    )


def subdomain(value: str) -> str | None:
    """A DNS subdomain (RFC 1123): the names of most objects."""
    if len(value) <= 253 and _SUBDOMAIN.fullmatch(value):
        return None
    return (
        "a lowercase RFC 1123 subdomain must consist of at most 253 lower case alphanumeric characters, '-' "
        "or '.', and must start and end with an alphanumeric character"
    )


def path_segment(value: str) -> str | None:
    """A URL path segment: the names of roles and bindings."""
    if value in (".", ".."):
        return f"may not be '{value}'"
    found = [character for character in "/%" if character in value]
    return f"may not contain '{found[0]}'" if found else None


def label_key(value: str) -> str | None:
    """An optional DNS subdomain and `/`, then a name of at most 63 characters."""
    prefix, slash, own = value.rpartition("/")
    if slash and (not prefix or subdomain(prefix)):
        return "prefix part " + str(subdomain(prefix) or "must be non-empty")
    if len(own) > 63 or not _QUALIFIED.fullmatch(own):
        return (
            "name part must consist of at most 63 alphanumeric characters, '-', '_' or '.', and must start "
            "and end with an alphanumeric character"
        )
    return None


def label_value(value: str) -> str | None:
    """Empty, or at most 63 characters."""
    if not value or (len(value) <= 63 and _QUALIFIED.fullmatch(value)):
        return None
    return (
        "a valid label must be an empty string or consist of at most 63 alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character"
    )


def count_or_share(value: float | str, most: int | None = None) -> str | None:
    """A count that is not negative, or a share such as `25%` of at most `most` percent."""
    if not isinstance(value, str):
        return "must be greater than or equal to 0" if value < 0 else None
    if not _SHARE.fullmatch(value):
        return "a valid percent string must be a numeric string followed by an ending '%'"
    return f"must not be greater than {most}%" if most is not None and int(value[:-1]) > most else None


def port_name(value: str) -> str | None:
    """The name of a container's port: at most 15 characters, one letter, no two dashes in a row."""
    if _PORT_NAME.fullmatch(value):
        return None
    return (
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-), at least one letter, at "
        "most 15 characters, and no two consecutive hyphens"
    )


def port(value: int) -> str | None:
    """The number of a port."""
    return None if 1 <= value <= 65535 else "must be between 1 and 65535, inclusive"
