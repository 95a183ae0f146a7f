"""Limits of the value of one attribute, by candidates that a provider accepts or refuses.

Each attribute has a generator that gives candidates and gets the provider's words against each, nothing if
it is accepted. So one request judges a candidate of every attribute of a configuration.
"""

import random
import re
from collections.abc import Collection, Generator, Iterable, Iterator
from typing import Any

Facts = dict[str, Any]
Asking = Generator[Any, str, Facts]
BETWEEN = "\x00"
"""Between the provider's errors about one value."""
_BAD = "zz?!"
_NUMBER = r"(-?[\d.]+)"
_RANGE = re.compile(rf"(?:in the range \(|between \(?){_NUMBER}\)?(?: - | and )\(?{_NUMBER}")
_LEAST = re.compile(rf"at least \(?{_NUMBER}")
_MOST = re.compile(rf"at most \(?{_NUMBER}")
_LISTED = re.compile(r"(?:one of:? \[(.*?)\](?=, got|$|\n))|Valid Values: \[(.*?)\s*\]", re.S)
# Forms of texts: kind -> values of which a provider accepts at least one, and others that it refuses.
_FORMS = {
    "arn": (
        (
            "arn:aws:iam::123456789012:role/worker",
            "arn:aws:s3:::bucket",
            "arn:aws:sns:us-east-1:123456789012:topic",
        ),
        ("worker", "123456789012", "role/worker", "arn:worker", "_:worker"),
    ),
    "cidr": (
        ("10.0.0.0/24", "10.0.0.0/16", "2001:db8::/56", "2001:db8::/64"),
        ("10.0.0.0", "10.0/16", "10.0.0.300/24", "10.0.0.0/40"),
    ),
    "address": (("10.0.0.9", "2001:db8::9"), ("10.0.0", "10.0.0.0/24", "10.0.0.300", "worker")),
    "json": (
        (
            "{}",
            '{"Version":"2012-10-17","Statement":[]}',
            '[{"name":"a","image":"b"}]',
            '{"key":"value"}',
            "[]",
        ),
        ("{", "worker", "{'key': 1}", '{"key":}', "key: value"),
    ),
    "time": (("2026-01-01T00:00:00Z",), ("2026-01-01", "tomorrow", "2026-01-01 00:00:00", "1", "100")),
    "integer": (("1", "60", "300", "3600", "100"), ("one", "1.5", "60s", "zz")),
    "boolean": (("true", "false"), ("yes", "on", "zz")),
    "url": (("https://example.com/path", "https://example.com"), ("example", "https", "//")),
    "week": (
        ("sun:05:00-sun:06:00", "Sun:05:00-Sun:06:00"),
        ("sun 05:00", "05:00-06:00", "noday:05:00-sun:06:00"),
    ),
    "day": (("05:00-06:00",), ("05:00", "sun:05:00-sun:06:00", "5:00-6:00", "25:00-26:00")),
    "account": (
        ("123456789012",),
        ("12345678901", "1234567890123", "worker", "12345678901a", "r-abcd", "ou-abcd-12345678"),
    ),
}
_BASES = (
    "abcdefgh",
    "Abcdefgh1",
    "abc",
    "a" * 20,
    "/abcdefgh",
    "/abcdefgh/",
    "1234",
    "a" * 40,
    "ab.cdefgh",
    "0",
)
_OTHERS = " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\n"
_SORTS = ("m", "M", "5", *_OTHERS, "é語")
# Numbers and texts that stand for something else than a size or a name in one property or another.
_NUMBERS = (-1, 1, 2, 3, 4, 5, 7, 8, 10, 12, 15, 16, 30, 31, 32, 60, 62, 64, 90, 93, 100, 128, 180, 256, 300)
# fmt: off
_LARGE = (365, 400, 500, 512, 600, 900, 1000, 1024, 1800, 2000, 3600, 4096, 5000, 8192, 10000, 65536, 86400)
# fmt: on
_SPECIAL = re.split(
    r"\|",
    "traffic-port|auto|Auto|AUTO|*|-1|0|default|Default|DEFAULT|none|None|NONE|all|All|ALL|any|ANY|self|latest"
    "|LATEST|$LATEST|$Latest|$Default|$default|AWS|amazon|aws/kms|alias/aws/s3|alias/key|system|true|false|1h"
    "|1d|PT1H|P1D|-2|443|1024-65535|rate(1 day)|rate(5 minutes)|cron(0 12 * * ? *)|s3://bucket/key|us-east-1"
    "|a@example.com|us-east-1a|vpc-0123456789abcdef0|sg-0123456789abcdef0|subnet-01234567|ec2.amazonaws.com"
    "|example.com|*.example.com|example.com.|_name.example.com|::1|#{host}|${aws:username}|{{resolve}}|/|//"
    "|a/b|a:b|TCP|tcp|tcp/443|@|0.0.0.0/0|name.fifo|my_name|my-name|my.name|My Name|my name|1name|name-|-name"
    "|a--b|a|A|application/json|1.2.3|1.30|0123456789abcdef0123456789abcdef"
    "|12345678-1234-1234-1234-123456789012",
)
_SPECIAL += [one for good, _ in _FORMS.values() for one in good]
_SAMPLES = 30
_LONGEST = 2**13
_FAR_LONGEST = 70000
_FAR = 10.0**12


def text() -> Asking:
    """Limits of a text. Facts are those of `rehearsal.core.rules.facts`."""
    said = yield _BAD
    errors = said.split(BETWEEN) if said else []
    lists = [one for error in errors for one in _words(error)]
    if lists and len(lists) == len(errors):  # else a word is one of several kinds of values
        listed = sorted({word for one in lists for word in one})
        if (yield listed[0]) == "":
            other = listed[0].swapcase()
            free = other != listed[0] and (yield other) == ""
            found: Facts = {"words_any_case" if free else "words": listed}
            return found if (yield "") else {**found, "blank": True}
    for kind, (good, bad) in _FORMS.items():
        if said and _hinted(kind, said):
            accepted = yield from _accepted(good)
            wrong = yield from _accepted(bad)
            if accepted and not wrong:
                form = yield from _bounded(kind)
                return {**form, **({} if (yield "") else {"blank": True})}
    for base in _BASES:
        if (yield base) == "":
            found = yield from _free(base, said)
            for one in _SPECIAL if found else ():
                if not fits(found, one) and (yield one) == "":
                    found = {}
                    break
            return found if not found or (yield "") else {**found, "blank": True}
    return {}


def _accepted(candidates: Iterable[str]) -> Generator[Any, str, list[str]]:
    found = []
    for one in candidates:
        if (yield one) == "":
            found.append(one)  # noqa: PERF401 (it yields)
    return found


def _words(said: str) -> Iterator[list[str]]:
    for match in _LISTED.finditer(said):
        inside = match[1] if match[1] is not None else match[2]
        quoted = re.findall(r'"([^"]*)"', inside)
        found = sorted({one for one in (quoted or inside.replace(",", " ").split()) if one})
        if found:
            yield found


def _hinted(kind: str, said: str) -> bool:
    hints = {
        "week": "ddd:hh24",
        "day": '"hh24:mi-hh24',
        "url": r"\bURL\b|\burl\b|https",
        "time": "RFC3339|rfc3339",
        "integer": "as int",
        "boolean": "boolean",
        "account": "ccount",
        "address": "IP(?:v[46])? address|IPv[46]",
    }
    hint = hints.get(kind, kind)
    return re.search(hint, said, 0 if kind in ("time", "address") else re.IGNORECASE) is not None


def _bounded(kind: str) -> Asking:
    """The facts of a form; an integer in a text has a range."""
    if kind != "integer":
        return {"form": kind}
    low = yield "-987"
    high = yield "99999999999"
    ranges = yield from _ranges(f"{low}\n{high}", lambda number: str(int(number)))
    return {"form": kind, **ranges}


def number() -> Asking:
    """Limits of a number."""
    low = yield -987
    high = yield 99999999999
    said = f"{low}\n{high}"
    listed = {
        _plain(one)
        for match in re.findall(r"one of:? \[([^\]]*)\]", said)
        for one in re.findall(_NUMBER, match)
    }
    found = yield from _ranges(said, lambda one: one, listed)
    for one in (*_NUMBERS, *_LARGE) if found else ():
        if not _holds(one, found["ranges"]) and (yield one) == "":
            return {}  # another rule accepts it
    if listed and found and all(one == other for one, other in found["ranges"]):
        return {"words": [one for one, _ in found["ranges"]]}
    return found


def _ranges(said: str, form: Any, listed: Collection[float] = ()) -> Asking:
    spans: set[tuple[float | None, float | None]] = {
        (_plain(low), _plain(high)) for low, high in _RANGE.findall(said)
    }
    spans |= {(_plain(low), None) for low in _LEAST.findall(said)}
    spans |= {(None, _plain(high)) for high in _MOST.findall(said)}
    found: list[list[float | None]] = []
    spans |= {(one, one) for one in listed}
    for low, high in sorted(spans, key=lambda span: (-_FAR if span[0] is None else span[0], span[1] or 0)):
        ends = [one for one in (low, high) if one is not None]
        sound = True
        for end in ends:
            sound = sound and (yield form(end)) == ""
        if sound:
            found.append([low, high])
    for (
        low,
        high,
    ) in found:  # a value beside every range must be refused, else the words were about something else
        for beside in (None if low is None else low - 1, None if high is None else high + 1):
            inside = beside is None or any(
                (one is None or beside >= one) and (other is None or beside <= other) for one, other in found
            )
            if not inside and (yield form(beside)) == "":
                return {}
    if found and not _holds(0, found) and (yield form(0)) == "":
        found.append([0, 0])
    return {"ranges": found} if found else {}


def _holds(value: float, spans: list[list[float | None]]) -> bool:
    return any((low is None or value >= low) and (high is None or value <= high) for low, high in spans)


def _plain(text: str) -> float:
    value = float(text.rstrip("."))
    return int(value) if value == int(value) else value


def fits(found: Facts, value: str) -> bool:
    """Return whether a text has the length and the characters that facts allow."""
    lowest, highest = found.get("length", (0, None))
    size = len(value)
    return lowest <= size <= (size if highest is None else highest) and (
        re.search(found.get("pattern", ""), value) is not None
    )


# -- texts of a free form --------------------------------------------------------------------------------


def _free(base: str, said: str) -> Asking:
    middle = max(1, len(base) // 2)
    every = f"{base[:middle]}mM5{_OTHERS}é語{base[middle:]}"
    found: Facts = {}
    highest = yield from _highest(base, middle)
    lowest = 0
    while lowest < len(base) and (yield base[:lowest]) != "":
        lowest += 1
    if highest is not None or lowest > 0:
        found["length"] = [lowest, highest]
    room = highest is None or highest >= len(every)
    if said == "" and room and (yield every) == "" and (yield every[middle:]) == "":
        return found
    places: list[list[str]] = []
    for place in range(3):
        tried = {_placed(base, sort, place, highest): sort for sort in _SORTS}
        accepted = yield from _accepted(tried)
        places.append([tried[one] for one in accepted])
    first, inner, last = places
    if not inner or min(len(one) for one in places) == len(_SORTS):
        return found
    pattern = _pattern(first, inner, last)
    chance = random.Random(base)  # noqa: S311 (the same samples in each run)
    for _ in range(_SAMPLES):
        size = chance.randint(max(1, lowest), max(lowest, min(highest or 12, 12)))
        sorts = chance.choice(
            (inner, first or inner, last or inner, _SORTS, ["m", "M", "5", "-", "_", ".", "/", ":"])
        )
        sample = "".join(chance.choice(sorts) for _ in range(size)) or "m"
        if not re.search(pattern, sample) and (yield sample) == "":
            return found
    return {**found, "pattern": pattern}


def _placed(base: str, sort: str, place: int, highest: int | None) -> str:
    """A text with a character at its beginning, in the middle, or at its end."""
    middle = len(base) // 2
    if place == 0:
        return sort + base[1:]
    if place == 2:
        return base[:-1] + sort
    longer = highest is None or len(base) + len(sort) <= highest
    return base[:middle] + sort + base[middle if longer else middle + len(sort) :]


def _highest(base: str, middle: int) -> Generator[Any, str, int | None]:
    """The most characters that are accepted; none if there is no limit."""

    def longer(size: int) -> str:
        more = re.sub(r"[^A-Za-z0-9]", "a", base[middle - 1])
        return base[:middle] + more * (size - len(base)) + base[middle:]

    low, high = len(base), len(base)
    while high < _LONGEST:
        low, high = high, high * 2
        if (yield longer(high)) != "":
            break
    else:
        said = yield longer(_FAR_LONGEST)
        for bound in {int(one) for one in re.findall(r"\d+", said.replace(",", "")) if len(one) < 6}:
            if (
                high < bound < _FAR_LONGEST
                and (yield longer(bound)) == ""
                and (yield longer(bound + 1)) != ""
            ):
                return bound
        return None
    while high - low > 1:
        size = (low + high) // 2
        low, high = (size, high) if (yield longer(size)) == "" else (low, size)
    return low


def _pattern(first: list[str], inner: list[str], last: list[str]) -> str:
    begin, middle, end = (_class(one) for one in (first, inner, last))
    if begin == middle == end:
        return rf"^{middle}*$"
    return rf"^(?!$){begin if first else ''}(?:{middle}*{end})?$" if begin else rf"^{middle}*$"


def _class(sorts: list[str]) -> str:
    names = {"m": "a-z", "M": "A-Z", "5": "0-9", "é語": "\\u0080-\\U0010ffff", "\n": "\\n"}
    return f"[{''.join(names.get(one) or re.escape(one) for one in sorts)}]" if sorts else ""
