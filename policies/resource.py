"""Resources as rules see them, from any source, and unknown values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

Origin = Literal["state", "planned", "live"]
_GRANTED = (
    ("artifactregistry", "repository", "Iam"),
    ("kms", "cryptoKey", "IAM"),
    ("kms", "keyRing", "IAM"),
    ("pubsub", "subscription", "IAM"),
    ("pubsub", "topic", "IAM"),
    ("secretmanager", "regionalSecret", "Iam"),
    ("secretmanager", "secret", "Iam"),
)
GOOGLE_GRANTS = tuple(
    f"gcp:{module}/{name}{iam}{form}:{name[0].upper()}{name[1:]}{iam}{form}"
    for module, name, iam in _GRANTED
    for form in ("Member", "Binding", "Policy")
)
"""Types of grants on one key, topic, subscription, secret or repository of Google Cloud."""


class UndeterminedError(Exception):
    """A rule needs a value that is not known; its outcome is undetermined, never a pass."""


class UnknownValue:
    """A secret, or a value that is known only after the deployment.

    Every use raises UndeterminedError: comparison, truth, length, indexing and `__class__`. So no rule can
    mistake it for a value. Only `is_unknown` and `repr` are safe. `is` (see PartlyKnown) and patterns of
    `match` cannot raise; rules do not use them.
    """

    __slots__ = ("_path", "_why")

    def __init__(self, path: str, why: str) -> None:
        self._path, self._why = path, why

    def __repr__(self) -> str:
        return f"<unknown: {unknown_reason(self)}>"

    def _refuse(self, *_: object) -> NoReturn:
        raise UndeterminedError(unknown_reason(self))

    # `isinstance` reads `__class__` if the type does not match.
    __class__ = property(_refuse)
    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _refuse
    __str__ = __format__ = __int__ = __float__ = __index__ = _refuse
    __len__ = __iter__ = __contains__ = __getitem__ = __call__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __mod__ = __or__ = __ror__ = __and__ = __rand__ = _refuse
    __getattr__ = _refuse


def unknown_reason(unknown: UnknownValue) -> str:
    """Path of an unknown value and the reason."""
    read = object.__getattribute__
    return f"{read(unknown, '_path')} {read(unknown, '_why')}"


def is_unknown(value: object) -> bool:
    """Return whether a value is unknown; the only safe check of one."""
    return type(value) is UnknownValue


class PartlyKnown(dict[str, Any]):
    """Properties of which some are unknown: reading one of those raises UndeterminedError.

    `is` cannot raise (`props.get("encrypted") is True`), so an unknown value is never returned.
    """

    def __getitem__(self, key: str) -> Any:
        return _given(super().__getitem__(key))

    def get(self, key: str, default: Any = None) -> Any:
        """The value; raises UndeterminedError where it is unknown."""
        return _given(super().get(key, default))

    def __contains__(self, key: object) -> bool:
        """Return whether it is set; raises UndeterminedError for an unknown value, which may be unset."""
        found = super().__contains__(key)
        if found:
            _given(super().__getitem__(str(key)))
        return found

    def values(self) -> Any:
        """Every value; raises UndeterminedError at an unknown one."""
        return [self[key] for key in self]

    def items(self) -> Any:
        """Every pair; raises UndeterminedError at an unknown value."""
        return [(key, self[key]) for key in self]


def partly(made: dict[str, Any]) -> dict[str, Any]:
    """The object, as PartlyKnown if one of its values is unknown."""
    return PartlyKnown(made) if any(map(is_unknown, made.values())) else made


def _given(value: Any) -> Any:
    if is_unknown(value):
        raise UndeterminedError(unknown_reason(value))
    return value


@dataclass(frozen=True, eq=False, slots=True)
class Resource:
    """One resource. Properties are plain JSON values in the cloud's camelCase, or unknown.

    Properties that are unset, or that a source does not have, are absent; properties that only the cloud
    computes, such as an ARN, are read with `computed`.
    """

    kind: str
    """The Pulumi type, such as aws:eks/nodeGroup:NodeGroup."""
    urn: str
    """Identifies it in findings; a URN, or the equivalent of the source."""
    name: str
    """Its name in the program, or in the cloud."""
    id: Any = ""
    """Id in the cloud; unknown before it exists."""
    region: Any = ""
    """Its own region or that of its provider; empty if the kind has none or the source has no data."""
    account: Any = ""
    """Number of the account, or the project; empty if the source has no data."""
    props: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] | None = None
    """Inputs of its program, without values that the cloud chose; None if the source has no data."""
    tags: Mapping[str, Any] = field(default_factory=dict)
    """Tags of AWS with those of the provider, labels of Google Cloud and Kubernetes."""
    parent: str = ""
    dependencies: Sequence[str] = ()
    references: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By property: URNs of the resources that its value comes from, as far as the source knows."""
    plugin: str = ""
    """Version of the provider plug-in; empty if the source has no data."""
    protect: Any = False
    """Unknown if only a program defines it."""
    chosen: Mapping[str, bool] = field(default_factory=dict)
    """By property that names a key: whether it is a customer-managed key; for sources without `asked`."""
    init_errors: Sequence[str] = ()
    """Errors of its last creation or update: it exists, but not in its intended state."""
    modified: Any = None
    """Last creation or update by the engine (datetime, UTC); unknown before; None without data."""
    origin: Origin = "state"
    """Kind of its source."""

    def computed(self, name: str) -> Any:
        """A property that only the cloud sets. Raises UndeterminedError before the deployment."""
        value = self.props.get(name)
        if value is None and self.origin == "planned":
            raise UndeterminedError(f"{name} is not known before the deployment")
        return value

    def raw(self, path: str) -> Any:
        """The value at a path such as `vpcConfig.subnetIds`; may be unknown, for `Stack` to resolve."""
        value: Any = self.props
        for part in path.split("."):
            if is_unknown(value) or not isinstance(value, dict):
                break
            value = dict.get(value, part)
        else:
            return value
        return value if is_unknown(value) else None

    def items(self, path: str) -> Iterator[tuple[str, Any]]:
        """(path, item) of a list of objects, of a single object, or of nothing; `a.b` reads below `a`."""
        value: Any = self.props
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, dict):
            yield path, value
        elif isinstance(value, list):
            yield from ((f"{path}[{index}]", item) for index, item in enumerate(value))
