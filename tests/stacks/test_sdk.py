"""The workarounds for the Pulumi SDK avoid repeated work, and still report errors."""

import asyncio
import importlib.util
import random
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pulumi
import pulumi.runtime.resource
import pulumi.runtime.rpc_manager
import pulumi.runtime.stack
import pytest
from pulumi import _types
from pulumi.output import UNKNOWN
from pulumi.runtime import resource_cycle_breaker, rpc, settings

from stacks import sdk
from tests.components.recorder import Recorder

SLOWLY = 40


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For how many tasks the SDK itself waited, each time it did."""
    found: list[int] = []
    real = asyncio.wait

    async def wait(tasks: Any, **how: Any) -> Any:
        if how.get("timeout") is None:
            found.append(len(tasks))
        return await real(tasks, **how)

    monkeypatch.setattr(asyncio, "wait", wait)
    return found


def run(program: Callable[[], None]) -> None:
    """Run a program to its end, without an engine."""
    pulumi.runtime.set_mocks(Recorder(), project="p", stack="dev", preview=False)
    until_settled: Any = pulumi.runtime.test  # Pulumi leaves it untyped
    until_settled(program)()


def output(coming: Awaitable[Any]) -> pulumi.Output[Any]:
    """An output that is known once what it waits for is."""
    return pulumi.Output.from_input(asyncio.ensure_future(coming))


def outputs(known: list[int]) -> None:
    """Outputs that become known one after the other."""

    async def later(after: int) -> int:
        for _ in range(after):
            await asyncio.sleep(0.001)
        return after

    for number in range(SLOWLY):
        output(later(number)).apply(known.append)


def test_a_program_waits_for_its_outputs_together(waits: list[int]) -> None:
    known: list[int] = []
    run(lambda: outputs(known))
    by_itself, waits[:] = sum(waits), []
    assert by_itself > SLOWLY * SLOWLY / 4

    def together() -> None:
        outputs(known)
        sdk.wait_for_outputs_once()

    run(together)
    assert sorted(known) == sorted([*range(SLOWLY)] * 2)
    assert sum(waits) < SLOWLY / 4


@pytest.mark.timeout(30)
def test_an_output_that_fails_ends_the_wait_for_one_that_never_comes() -> None:
    def fail(_: int) -> None:
        raise ValueError("a bad value")

    def program() -> None:
        pulumi.Output.from_input(1).apply(fail)
        output(asyncio.sleep(3600))
        sdk.wait_for_outputs_once()

    with pytest.raises(ValueError, match="a bad value"):
        run(program)


@pytest.mark.timeout(30)
def test_a_call_that_fails_ends_the_wait_for_one_that_never_comes() -> None:
    def program() -> None:
        async def refused() -> None:
            raise ValueError("the engine said no")

        call = pulumi.runtime.settings._get_rpc_manager().do_rpc("register", refused)
        output(call())
        output(asyncio.sleep(3600))
        sdk.wait_for_outputs_once()

    with pytest.raises(ValueError, match="the engine said no"):
        run(program)


class Part(pulumi.Resource):
    """A resource without an engine."""

    def __init__(self) -> None:
        """It is not registered."""


def test_a_dependency_is_refused_exactly_where_the_sdk_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = rpc
    monkeypatch.setattr(module, "declare_dependency", module.declare_dependency)  # put back afterwards
    sdk.with_short_searches()
    drawn, refused = random.Random(1), 0
    for _ in range(40):
        ours, theirs = [Part() for _ in range(12)], [Part() for _ in range(12)]
        for _ in range(40):
            one, other = drawn.randrange(12), drawn.randrange(12)
            expected = resource_cycle_breaker.declare_dependency(theirs[one], theirs[other])
            assert module.declare_dependency(ours[one], ours[other]) is expected
            refused += not expected
    assert refused > 100


@pulumi.output_type
class Condition(dict[str, Any]):
    """A part of a resource with a field whose name is that of a method of dictionaries."""

    def __init__(self, values: list[Any]) -> None:
        pulumi.set(self, "values", values)

    @property
    @pulumi.getter
    def values(self) -> Any:
        return pulumi.get(self, "values")


def untouched(module: ModuleType) -> Any:
    """A second copy of a module of the SDK, without workarounds, which the recorder applied to the first."""
    spec = importlib.util.find_spec(module.__name__)
    assert spec and spec.loader
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


def circular() -> list[Any]:
    found: list[Any] = [1]
    found.append(found)
    return found


@pytest.mark.parametrize(
    "value",
    [
        *(
            "text",
            1,
            None,
            True,
            [],
            {},
            [[1, {"a": [None]}]],
            UNKNOWN,
            [UNKNOWN],
            {"a": [1, {"b": UNKNOWN}]},
        ),
        *(
            (UNKNOWN,),
            Condition(["a"]),
            Condition([UNKNOWN]),
            {"a": Condition([UNKNOWN])},
            circular(),
            Part(),
        ),
    ],
    ids=repr,
)
def test_a_value_is_unknown_exactly_where_the_sdk_finds_it_unknown(value: object) -> None:
    assert rpc.contains_unknowns is sdk._contains_unknowns
    assert rpc.contains_unknowns(value) is untouched(rpc).contains_unknowns(value)


def test_an_output_is_remembered_until_it_is_known_and_a_failed_one_stays() -> None:
    left: list[list[bool]] = []

    async def fail() -> None:
        raise ValueError("a bad value")

    async def program() -> None:
        good, bad = output(asyncio.sleep(0)), output(fail())
        remembered = settings.SETTINGS.outputs
        left.append([one._data in remembered for one in (good, bad)])
        await asyncio.wait([good._data, bad._data])
        await asyncio.sleep(0)
        left.append([one._data in remembered for one in (good, bad)])

    with pytest.raises(ValueError, match="a bad value"):
        run(program)  # type: ignore[arg-type]  # the SDK waits for it
    assert left == [[True, True], [False, True]]


def test_types_are_taken_apart_as_the_sdk_does() -> None:
    module: Any = _types
    theirs = untouched(_types)
    output: Any = pulumi.Output
    asked = [str, output[int], list[str], str | None]
    expected = [(theirs._is_union_type(one), theirs.unwrap_type(one)) for one in asked]
    for _ in range(2):  # of the second time the answers are kept
        assert [(module._is_union_type(one), module.unwrap_type(one)) for one in asked] == expected


def test_the_engine_receives_of_warnings_and_not_of_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[str] = []

    class Engine:
        def Log(self, request: pulumi.runtime.proto.engine_pb2.LogRequest) -> None:  # noqa: N802
            received.append(request.message)

    monkeypatch.setattr("pulumi.runtime.settings.get_engine", Engine)
    monkeypatch.setattr(pulumi.log, "debug", pulumi.log.debug)  # put back afterwards
    sdk.without_debug_messages()
    for module in (pulumi.runtime.resource, pulumi.runtime.rpc_manager):
        module.log.debug("a step")  # as they call it
        module.log.warn("a warning")
    assert received == ["a warning", "a warning"]
