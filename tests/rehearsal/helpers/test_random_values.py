"""Random values have their documented format, and stay as they are."""

import base64
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal.core.model import UNKNOWN, Call, ProviderInstance, RefusalError
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.helpers.random_values import _TEXT_DEFAULTS, RandomCloud, _text
from tests.rehearsal.driver import refused

CACHE = Path(__file__).resolve().parents[3] / ".trainstack" / "cache" / "schemas"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RandomCloud]:
    schemas = Schemas("random", CACHE)
    home = tmp_path_factory.mktemp("home")
    yield RandomCloud(State(home / "state.sqlite"), schemas, home)
    schemas.close()


def call(kind: str, **more: Any) -> Call:
    token = f"random:index/{kind[0].lower()}{kind[1:]}:{kind}"
    urn = f"urn:pulumi:dev::p::{token}::it"
    return Call(ProviderInstance("random"), token, urn, threading.Event(), lambda *_: None, **more)


def made(cloud: RandomCloud, kind: str, **inputs: Any) -> tuple[str, dict[str, Any]]:
    assert cloud.check(call(kind), None, inputs)[1] == []
    return cloud.create(call(kind), inputs, preview=False)


@settings(max_examples=60)
@given(minima=st.tuples(*[st.integers(0, 4)] * 4), spare=st.integers(0, 30), upper=st.booleans())
def test_strings_satisfy_their_minima(minima: tuple[int, int, int, int], spare: int, upper: bool) -> None:
    low, up, digits, special = minima
    given_ = {"minLower": low, "minUpper": up, "minNumeric": digits, "minSpecial": special, "upper": upper}
    length = max(1, sum(minima) + spare)
    text = _text({**_TEXT_DEFAULTS, **given_, "length": length, "overrideSpecial": "_%"})[0]
    assert len(text) == length
    assert sum(map(str.islower, text)) >= low and sum(map(str.isdigit, text)) >= digits
    assert sum(map(str.isupper, text)) >= up and (upper or sum(map(str.isupper, text)) == up)
    assert sum(one in "_%" for one in text) >= special
    assert all(one.isalnum() or one in "_%" for one in text)


NO_CHARACTERS = {"length": 3, **dict.fromkeys(("lower", "upper", "numeric", "special"), False)}


@pytest.mark.parametrize(
    ("kind", "inputs", "code"),
    [
        ("RandomString", {"length": 3, "minLower": 2, "minUpper": 2}, "InvalidLength"),
        ("RandomString", NO_CHARACTERS, "InvalidCharacterSets"),
        ("RandomInteger", {"min": 3, "max": 1}, "InvalidRange"),
    ],
)
def test_impossible_values_are_refused(
    cloud: RandomCloud, kind: str, inputs: dict[str, Any], code: str
) -> None:
    with pytest.raises(RefusalError) as caught:
        made(cloud, kind, **inputs)
    assert caught.value.code == code


def test_a_password_is_not_its_own_id(cloud: RandomCloud) -> None:
    identifier, outputs = made(cloud, "RandomPassword", length=24, special=False)
    assert identifier == "none" and outputs["result"].isalnum() and len(outputs["result"]) == 24


def test_the_encodings_of_an_id_agree(cloud: RandomCloud) -> None:
    identifier, outputs = made(cloud, "RandomId", byteLength=6, prefix="run-")
    assert len(identifier) == 8 and outputs["b64Url"] == f"run-{identifier}"
    drawn = base64.urlsafe_b64decode(identifier)
    assert outputs["hex"] == f"run-{drawn.hex()}" and outputs["dec"] == f"run-{int.from_bytes(drawn, 'big')}"


def test_other_kinds(cloud: RandomCloud) -> None:
    assert made(cloud, "RandomPet", length=3, prefix="x", separator="_")[0].count("_") == 3
    assert uuid.UUID(made(cloud, "RandomUuid")[1]["result"]).version == 4
    assert 5 <= made(cloud, "RandomInteger", min=5, max=7)[1]["result"] <= 7
    drawn = made(cloud, "RandomBytes", length=5)[1]
    assert base64.b64decode(drawn["base64"]).hex() == drawn["hex"]
    assert sorted(made(cloud, "RandomShuffle", inputs=["a", "b", "c"])[1]["results"]) == ["a", "b", "c"]
    assert len(made(cloud, "RandomShuffle", inputs=["a", "b"], resultCount=5)[1]["results"]) == 5


def test_a_seed_repeats_and_its_absence_does_not(cloud: RandomCloud) -> None:
    many = [str(number) for number in range(40)]
    seeded = [made(cloud, "RandomShuffle", inputs=many, seed="s")[1]["results"] for _ in range(2)]
    free = [made(cloud, "RandomShuffle", inputs=many)[1]["results"] for _ in range(2)]
    assert seeded[0] == seeded[1] and free[0] != free[1]


def test_any_change_makes_another_value(cloud: RandomCloud) -> None:
    old, new = {"length": 8, "keepers": {"a": "1"}}, {"length": 8, "keepers": {"a": "2"}}
    assert cloud.diff(call("RandomString"), "x", old, old, new).replaces == ("keepers.a",)
    assert cloud.diff(call("RandomString"), "x", old, old, old).changed == ()


def test_a_preview_knows_no_value(cloud: RandomCloud) -> None:
    identifier, outputs = cloud.create(call("RandomPassword"), {"length": 8}, preview=True)
    assert identifier == "" and outputs["result"] is UNKNOWN and outputs["length"] == 8


def test_refresh_keeps_and_import_reads_the_id(cloud: RandomCloud) -> None:
    remembered = {"result": "abc", "length": 3}
    assert cloud.read(call("RandomString", remembered=remembered), "abc", {"length": 3}) == (
        {"length": 3},
        remembered,
    )
    found = cloud.read(call("RandomString"), "Abc9!", {})
    assert found and found[1]["result"] == "Abc9!" and found[0]["length"] == 5
    integer = cloud.read(call("RandomInteger"), "15,1,99", {})
    assert integer and integer[1] == {"result": 15, "min": 1, "max": 99}
    refused("ImportNotSupported", cloud.read, call("RandomPet"), "brave-otter", {})


def test_a_misspelt_input_is_reported(cloud: RandomCloud) -> None:
    failures = cloud.check(call("RandomPet"), None, {"lenght": 2})[1]
    assert "mean length" in failures[0].reason
