"""Rewriting of texts of a container for this machine: paths, host names, bucket and database addresses."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Host:
    """Local target of a DNS name of the cluster: a loopback address; for Services, port -> local port."""

    address: str
    ports: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LocalNames:
    """Names that the text of one pod may use, and their local counterparts.

    `paths` maps folders and files of the container to local ones; `hosts` is keyed by fully qualified names
    (`name.namespace.svc.cluster.local`), which match in every shorter form, too; `buckets`
    (`s3://name`, `gs://name`) and `databases` (their addresses) map to folders. `reserve` is called for fully
    qualified names without a target.
    """

    namespace: str
    paths: Mapping[str, Path] = field(default_factory=dict)
    hosts: Mapping[str, Host] = field(default_factory=dict)
    buckets: Mapping[str, Path] = field(default_factory=dict)
    databases: Mapping[str, Path] = field(default_factory=dict)
    reserve: Callable[[str], Host | None] = lambda _: None


_DOMAIN = ".svc.cluster.local"
_NAME = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_QUALIFIED = re.compile(
    rf"(?<![\w.-])({_NAME}(?:\.{_NAME})+\.svc(?:\.cluster\.local)?)\.?(?::(\d+))?(?![\w-])"
)
# A short name counts only where a host is expected: after `//` or `@`, or as the whole value.
_URL_HOST = re.compile(rf"(?<=//)((?:[^\s/@]*@)?)({_NAME}(?:\.{_NAME})*)(?::(\d+))?(?=[/?#\s,;\"']|$)")
_WHOLE = re.compile(rf"()({_NAME}(?:\.{_NAME})*)(?::(\d+))?")
_BUCKET = re.compile(r"((?:s3|gs)://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])((?:/[^\s,;\"']*)?)")
_DATABASE = re.compile(
    r"(?:postgres(?:ql)?|mysql)(?:\+\w+)?://(?:[^\s/]*@)?([A-Za-z0-9.-]+)(?::\d+)?/(\w+)(?:\?[^\s,;\"']*)?"
)


def rewrite(text: str, names: LocalNames) -> str:
    """`text` with every known name replaced by its local form."""
    # Paths first: the other replacements insert local paths, which must not be rewritten again.
    text = rewrite_paths(text, names.paths)
    text = _DATABASE.sub(lambda found: _database(found, names), text)
    text = _BUCKET.sub(lambda found: _bucket(found, names), text)
    text = _QUALIFIED.sub(lambda found: _qualified(found, names), text)
    text = _URL_HOST.sub(lambda found: _short(found, names), text)
    whole = _WHOLE.fullmatch(text)
    if whole and (whole[3] or "." in whole[2]):
        text = _short(whole, names)
    return text


def rewrite_paths(text: str, paths: Mapping[str, Path]) -> str:
    """`text` with every path at or below a key of `paths` replaced; the longest key wins."""
    if not paths:
        return text
    keys = "|".join(re.escape(path) for path in sorted(paths, key=len, reverse=True))
    pattern = re.compile(rf"(?:(?<=file://)|(?<=sqlite:///)|(?<![\w./-]))({keys})(?=/|$|[\s:,;\"'=?&)\]])")
    return pattern.sub(lambda found: str(paths[found[1]]), text)


def unknown_buckets(text: str, names: LocalNames) -> list[str]:
    """The buckets in `text` that do not exist."""
    return [found[1] for found in _BUCKET.finditer(text) if found[1] not in names.buckets]


def _database(found: re.Match[str], names: LocalNames) -> str:
    folder = names.databases.get(found[1])
    return found[0] if folder is None else f"sqlite:///{folder / found[2]}.db"


def _bucket(found: re.Match[str], names: LocalNames) -> str:
    folder = names.buckets.get(found[1])
    return found[0] if folder is None else f"file://{folder}{found[2]}"


def _qualified(found: re.Match[str], names: LocalNames) -> str:
    name = found[1] if found[1].endswith(_DOMAIN) else found[1].removesuffix(".svc") + _DOMAIN
    return _located(found, found[0], names.hosts.get(name) or names.reserve(name), found[2])


def _short(found: re.Match[str], names: LocalNames) -> str:
    user, name, port = found[1], found[2], found[3]
    candidates = (f"{name}{_DOMAIN}", f"{name}.{names.namespace}{_DOMAIN}")
    host = next((names.hosts[full] for full in candidates if full in names.hosts), None)
    return user + _located(found, found[0][len(user) :], host, port)


def _located(found: re.Match[str], original: str, host: Host | None, port: str | None) -> str:
    if host is None:
        return original
    if not port and found.string[: found.start()].endswith("http://") and 80 in host.ports:
        port = "80"
    return host.address + (f":{host.ports.get(int(port), int(port))}" if port else "")
