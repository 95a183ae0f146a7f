"""One resource as rules see it, whichever source it comes from, and values that nobody knows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

Origin = Literal["state", "planned", "live"]


class UndeterminedError(Exception):
    """A rule needs a value that is not known; its outcome is undetermined, never a pass."""


class Unknown:
    """A value that is a secret, or that only the deployment will tell.

    Whoever looks at it gets UndeterminedError: comparing, testing, counting, reading from it and asking for
    its class all raise. So no rule can take it for a value. Only `is_unknown` and `repr` are safe. What
    cannot be made to raise is `is` (see PartlyKnown) and a pattern of `match`, which rules do without.
    """

    __slots__ = ("_path", "_why")

    def __init__(self, path: str, why: str) -> None:
        self._path, self._why = path, why

    def __repr__(self) -> str:
        return f"<unknown: {told(self)}>"

    def _refuse(self, *_: object) -> NoReturn:
        raise UndeterminedError(told(self))

    # `isinstance` asks for the class of what is not an instance by its type.
    __class__ = property(_refuse)
    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _refuse
    __str__ = __format__ = __int__ = __float__ = __index__ = _refuse
    __len__ = __iter__ = __contains__ = __getitem__ = __call__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __mod__ = __or__ = __ror__ = __and__ = __rand__ = _refuse
    __getattr__ = _refuse


def told(unknown: Unknown) -> str:
    """Which value is not known, and why."""
    read = object.__getattribute__
    return f"{read(unknown, '_path')} {read(unknown, '_why')}"


def is_unknown(value: object) -> bool:
    """Whether a value is not known; the one question that may be asked of it."""
    return type(value) is Unknown


class PartlyKnown(dict[str, Any]):
    """Properties of which some are unknown: reading one of those raises UndeterminedError.

    `is` cannot be made to raise (`props.get("encrypted") is True`), so an unknown value is not handed out.
    """

    def __getitem__(self, key: str) -> Any:
        return _given(super().__getitem__(key))

    def get(self, key: str, default: Any = None) -> Any:
        """The value; raises UndeterminedError where it is unknown."""
        return _given(super().get(key, default))

    def __contains__(self, key: object) -> bool:
        """Whether it is set; raises UndeterminedError where it is unknown, which may turn out as not set."""
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
    """An object that does not hand out what is unknown in it."""
    return PartlyKnown(made) if any(map(is_unknown, made.values())) else made


def _given(value: Any) -> Any:
    if is_unknown(value):
        raise UndeterminedError(told(value))
    return value


@dataclass(frozen=True, eq=False, slots=True)
class Resource:
    """One resource. Properties are plain JSON values in the cloud's camelCase, or unknown.

    Properties that a source does not have are absent, as those that nobody has set; what the cloud computes
    and nobody sets, such as an ARN, is read with `computed`.
    """

    kind: str
    """The Pulumi type, such as aws:eks/nodeGroup:NodeGroup."""
    urn: str
    """Names it in findings; a URN, or what the source has instead."""
    name: str
    """Its name in the program, or in the cloud."""
    id: Any = ""
    """What the cloud calls it; unknown before it exists."""
    region: Any = ""
    """Of its provider, unless it names one itself; empty where the kind has none, or no source says."""
    account: Any = ""
    """Number of the account, or the project; empty where no source says."""
    props: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] | None = None
    """What its program asked for, without what the cloud chose; None where the source does not say."""
    tags: Mapping[str, Any] = field(default_factory=dict)
    """Tags of AWS with those of the provider, labels of Google Cloud and Kubernetes."""
    parent: str = ""
    dependencies: Sequence[str] = ()
    references: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By property: the URNs of those from which its value comes, as far as the source knows."""
    plugin: str = ""
    """Version of the plug-in that made it; empty where no source says."""
    protect: Any = False
    """Unknown where only a program could say so."""
    chosen: Mapping[str, bool] = field(default_factory=dict)
    """By property that names a key: whether somebody made the key; where `asked` cannot tell."""
    init_errors: Sequence[str] = ()
    """What went wrong when it was made or changed last: it exists, and is not what it was to be."""
    modified: Any = None
    """When the engine made or changed it last (datetime, UTC); unknown before; None where no source says."""
    origin: Origin = "state"
    """Where it comes from; of no concern to rules."""

    def computed(self, name: str) -> Any:
        """A property that only the cloud sets. Raises UndeterminedError where it is not known yet."""
        value = self.props.get(name)
        if value is None and self.origin == "planned":
            raise UndeterminedError(f"{name} is not known before the deployment")
        return value

    def raw(self, path: str) -> Any:
        """The value at a path such as `vpcConfig.subnetIds`, also an unknown one, for `Stack` to follow."""
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
