"""Values that sources newer than a provider accept: botocore, and the documentation of the SDK.

A provider is older than the SDK that is built on its next version. What it refuses and a newer source
names is accepted: no fact is narrower than botocore's model of the service, or than the words and the numbers
in the documentation of the property.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import botocore.session

_WORD = re.compile(r"`+\"?([^`\"\s]+)\"?`+")
_NUMBER = re.compile(r"(?<![\w.-])-?\d[\d,]*(?:\.\d+)?(?![\w.])")
# So much of a list must be in an enum for the two to be about the same.
_ALIKE = 0.75
# Modules of the SDK whose services have other names.
_SERVICES = {
    "alb": ("elbv2",),
    "cfg": ("config",),
    "cloudwatch": ("cloudwatch", "logs", "events"),
    "cognito": ("cognito-idp", "cognito-identity"),
    "ebs": ("ec2", "dlm"),
    "ec2clientvpn": ("ec2",),
    "ec2transitgateway": ("ec2",),
    "elb": ("elb",),
    "lb": ("elbv2",),
    "msk": ("kafka",),
    "mskconnect": ("kafkaconnect",),
    "sfn": ("stepfunctions",),
    "vpc": ("ec2",),
}
# Lists that grow with every machine, engine or region have rules of their own.
_GROWING = re.compile(
    r"runtimes?(\[\])?$|instanceTypes?(\[\])?$|instanceClass$|nodeType$|engineVersion$|(^|\.)version$|regions?(\[\])?$|InstanceTypes(\[\])?$"
    r"|retentionInDays$|(^|\.)family$|languageCode|computeType$|acceleratorTypes?|modelId"
)
_MOST_WORDS = 130


def grows(path: str, words: Iterable[Any]) -> bool:
    """Return whether a list is one of machines, versions or regions, which others judge."""
    found = [*words]
    return _GROWING.search(path) is not None or len(found) > _MOST_WORDS


@functools.cache
def _session() -> Any:
    return botocore.session.get_session()


@functools.cache
def services(module: str, terraform: str) -> tuple[str, ...]:
    """The services of botocore whose names are those of a module of the SDK or of a provider's type."""
    plain = {one: re.sub(r"\W", "", one) for one in _session().get_available_services()}
    words = terraform.removeprefix("aws_").split("_")
    heads = {"".join(words[:size]) for size in (1, 2, 3)} | {module.lower()}
    named = {
        one for one, name in plain.items() if any(name.startswith(head) for head in heads if len(head) > 2)
    }
    return tuple(
        sorted(named | set(_SERVICES.get(module, ())) | {one for one in ("ec2", "rds") if not named})
    )


@functools.cache
def _enums(service: str) -> tuple[frozenset[str], ...]:
    model = _session().get_service_model(service)
    return tuple(
        frozenset(enum)
        for name in model.shape_names
        if (enum := getattr(model.shape_for(name), "enum", None))
    )


@functools.cache
def _limits(service: str) -> Mapping[str, tuple[tuple[str, float | None, float | None], ...]]:
    """Name of a member, in small letters -> (type, least, most) of its shapes."""
    model = _session().get_service_model(service)
    found: dict[str, set[tuple[str, float | None, float | None]]] = {}
    for name in model.shape_names:
        for member, shape in getattr(model.shape_for(name), "members", {}).items():
            about = shape.metadata
            if "min" in about or "max" in about:
                found.setdefault(member.lower(), set()).add(
                    (shape.type_name, about.get("min"), about.get("max"))
                )
    return {name: tuple(sorted(rows, key=str)) for name, rows in found.items()}


def words(listed: Iterable[str], names: Iterable[str], text: str, known: Iterable[str]) -> list[str]:
    """A list with the words of the enums of services that are like it, and of the documentation."""
    found = set(listed)
    more: set[str] = set()
    for service in names:
        for enum in _enums(service):
            if len(found & enum) >= max(1, _ALIKE * len(found)):
                more |= enum
    return sorted(found | more | spelt(text, known))


def numbers(text: str) -> Iterator[float]:
    """The numbers in a text."""
    for one in _NUMBER.findall(text):
        yield float(one.replace(",", ""))


def ranges(
    spans: list[list[float | None]], path: str, names: Iterable[str], text: str
) -> list[list[float | None]]:
    """Ranges that hold the numbers of the documentation, and botocore's limits of a member of that name."""
    name = path.rpartition(".")[2].removesuffix("[]").lower()
    found = [[*span] for span in spans]
    # A later version of a service raises the upper limit.
    top = max(found, key=lambda span: float("inf") if span[1] is None else span[1])
    low = min(float("-inf") if span[0] is None else span[0] for span in found)
    said = [
        float(most)
        for service in names
        for kind, _, most in _limits(service).get(name, ())
        if kind in _WHOLE and most
    ]
    said += [one for one in numbers(text) if one >= low]
    if top[1] is not None and said:
        top[1] = max(top[1], *(int(one) if one == int(one) else one for one in said))
    return found


def length(bounds: list[int | None], text: str) -> list[int | None]:
    """The bounds of a length, and not below the characters that the documentation names."""
    said = [int(one.replace(",", "")) for one in re.findall(r"([\d,]*\d)\s+(?:\w+\s+)?characters", text)]
    least, most = bounds
    return [least, None if most is None else max([most, *said])]


def spelt(text: str, known: Iterable[str]) -> set[str]:
    """The words that a documentation has as values."""
    return {word for word in _WORD.findall(text) if re.fullmatch(r"[\w.:+/#{}$*-]+", word)} - set(known)


_WHOLE = ("integer", "long", "float", "double")
