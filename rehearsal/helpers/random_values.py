"""The `random` package: values from `secrets`, as strong as the real provider's.

Source of names, defaults and formats: the registry documentation of hashicorp/random. Two things differ: a
`seed` gives reproducible values, but not those of Go's generator, and `bcryptHash` is left out.
"""

import base64
import random
import secrets
import uuid
from collections.abc import Mapping
from pathlib import Path

from rehearsal.core.model import Properties, RefusalError
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.helpers.cloud import HelperCloud, Maker
from rehearsal.helpers.pet_names import ADJECTIVES, ADVERBS, ANIMALS

_CLASSES = {
    "Lower": "abcdefghijklmnopqrstuvwxyz",
    "Upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "Numeric": "0123456789",
    "Special": "!@#$%&*()-_=+[]{}<>:?",
}
_TEXT_DEFAULTS: Properties = {
    **{name.lower(): True for name in _CLASSES},
    "number": True,
    **{f"min{name}": 0 for name in _CLASSES},
}
_DRAW = secrets.SystemRandom()


class RandomCloud(HelperCloud):
    """See `model.EmulatedCloud`."""

    def __init__(self, state: State, schemas: Schemas, home: Path) -> None:
        super().__init__(schemas, MAKERS, {})


def _text(inputs: Properties) -> tuple[str, Properties]:
    """A string with at least so many characters of each class."""
    sets = dict(_CLASSES)
    if inputs.get("overrideSpecial") is not None:
        sets["Special"] = str(inputs["overrideSpecial"])
    numeric = inputs["numeric"] and inputs["number"]
    chosen = {**inputs, "numeric": numeric}
    allowed = "".join(sets[name] for name in sets if chosen[name.lower()])
    length, least = int(inputs["length"]), sum(int(inputs[f"min{name}"]) for name in sets)
    if length < 1 or least > length:
        message = f"length ({length}) must be at least 1 and at least the sum of the minima ({least})."
        raise RefusalError("InvalidLength", message)
    if not allowed:
        raise RefusalError("InvalidCharacterSets", "at least one character set must be allowed.")
    drawn = [secrets.choice(sets[name]) for name in sets for _ in range(int(inputs[f"min{name}"]))]
    drawn += [secrets.choice(allowed) for _ in range(length - len(drawn))]
    _DRAW.shuffle(drawn)
    return "".join(drawn), {"numeric": numeric, "number": numeric, "result": "".join(drawn)}


def _string(inputs: Properties) -> tuple[str, Properties]:
    result, outputs = _text(inputs)
    return result, outputs


def _password(inputs: Properties) -> tuple[str, Properties]:
    """Like a string; its id does not reveal it."""
    return "none", _text(inputs)[1]


def _adopt_text(id: str) -> Properties:
    return {"result": id, "length": len(id)}


def _identifier(inputs: Properties) -> tuple[str, Properties]:
    if int(inputs["byteLength"]) < 1:
        raise RefusalError("InvalidLength", "byteLength must be at least 1.")
    return _forms(secrets.token_bytes(int(inputs["byteLength"])), str(inputs.get("prefix") or ""))


def _forms(drawn: bytes, prefix: str) -> tuple[str, Properties]:
    """The encodings of random bytes; the id has no prefix."""
    url = base64.urlsafe_b64encode(drawn).decode().rstrip("=")
    spelled = {
        "b64Std": base64.b64encode(drawn).decode(),
        "b64Url": url,
        "dec": str(int.from_bytes(drawn, "big")),
        "hex": drawn.hex(),
    }
    return url, {name: prefix + text for name, text in spelled.items()}


def _adopt_identifier(id: str) -> Properties:
    prefix, _, text = id.rpartition(",")
    drawn = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    given = {"prefix": prefix} if prefix else {}
    return {**given, "byteLength": len(drawn), **_forms(drawn, prefix)[1]}


def _generator(inputs: Properties) -> random.Random:
    seed = inputs.get("seed")
    return random.Random(str(seed)) if seed else _DRAW  # noqa: S311 - a value with a seed is no secret


def _integer(inputs: Properties) -> tuple[str, Properties]:
    low, high = int(inputs["min"]), int(inputs["max"])
    if low > high:
        raise RefusalError("InvalidRange", f"min ({low}) must be at most max ({high}).")
    result = _generator(inputs).randint(low, high)
    return str(result), {"result": result}


def _adopt_integer(id: str) -> Properties:
    result, low, high = (int(part) for part in id.split(",")[:3])
    return {"result": result, "min": low, "max": high}


def _pet(inputs: Properties) -> tuple[str, Properties]:
    """Adverbs, then one adjective, then an animal: `length` words in all."""
    length = int(inputs["length"])
    if length < 1:
        raise RefusalError("InvalidLength", "length must be at least 1.")
    kinds = [ADVERBS] * (length - 2) + [ADJECTIVES] * (length > 1) + [ANIMALS]
    words = [secrets.choice(kind) for kind in kinds]
    if inputs.get("prefix"):
        words.insert(0, str(inputs["prefix"]))
    return str(inputs["separator"]).join(words), {}


def _shuffle(inputs: Properties) -> tuple[str, Properties]:
    """A permutation of the inputs, repeated in another order until there are enough results."""
    pool, generator = list(inputs["inputs"]), _generator(inputs)
    count = int(inputs["resultCount"]) if inputs.get("resultCount") is not None else len(pool)
    results: list[str] = []
    while pool and len(results) < count:
        results += generator.sample(pool, len(pool))
    return "-", {"results": results[:count]}


def _uuid(inputs: Properties) -> tuple[str, Properties]:
    result = str(uuid.uuid4())
    return result, {"result": result}


def _adopt_uuid(id: str) -> Properties:
    return {"result": str(uuid.UUID(id))}


def _bytes(inputs: Properties) -> tuple[str, Properties]:
    if int(inputs["length"]) < 1:
        raise RefusalError("InvalidLength", "length must be at least 1.")
    drawn = secrets.token_bytes(int(inputs["length"]))
    return "none", _byte_forms(drawn)


def _byte_forms(drawn: bytes) -> Properties:
    return {"base64": base64.b64encode(drawn).decode(), "hex": drawn.hex()}


def _adopt_bytes(id: str) -> Properties:
    drawn = base64.b64decode(id, validate=True)
    return {"length": len(drawn), **_byte_forms(drawn)}


MAKERS: Mapping[str, Maker] = {
    f"random:index/{name[0].lower()}{name[1:]}:{name}": maker
    for name, maker in {
        "RandomString": Maker(_string, _TEXT_DEFAULTS, adopt=_adopt_text),
        "RandomPassword": Maker(_password, _TEXT_DEFAULTS, adopt=_adopt_text),
        "RandomId": Maker(_identifier, adopt=_adopt_identifier),
        "RandomInteger": Maker(_integer, adopt=_adopt_integer),
        "RandomPet": Maker(_pet, {"length": 2, "separator": "-"}),
        "RandomShuffle": Maker(_shuffle),
        "RandomUuid": Maker(_uuid, adopt=_adopt_uuid),
        "RandomUuid4": Maker(_uuid, adopt=_adopt_uuid),
        "RandomBytes": Maker(_bytes, adopt=_adopt_bytes),
    }.items()
}
