"""Workarounds for slow parts of the Pulumi SDK in large programs, without settings (pulumi 3.272.0)."""

import asyncio
import functools
import typing
from typing import Any

import pulumi
from pulumi import _types
from pulumi.runtime import resource_cycle_breaker, rpc, settings

_CHECK_S = 1.0
_NEEDS = resource_cycle_breaker._DEPENDENCIES_PROPERTY
_NEEDED = "_trainstack_needed"
_PLAIN = frozenset({str, int, float, bool, type(None)})


def without_debug_messages() -> None:
    """Keep the SDK from sending the engine every message of `pulumi up --debug`.

    It sends them regardless of the option: 1,857 calls for the 406 resources of dev-aws, and the program
    waits for each (log.py, `_log`).
    """
    pulumi.log.debug = lambda *_, **__: None


class _Plain:
    """`Input[T]` and `Optional[T]` as `T`: the SDK takes the parts of all in the same way."""

    def __class_getitem__(cls, item: object) -> object:
        return item


def light_types() -> None:
    """Make imports of providers' modules, mostly annotations, cheaper: for a process that only plans.

    Call it before their first import. `Input[T]` and `Optional[T]` are unions that `typing` builds for
    thousands of fields, and it compiles the names in quotes, of which few are ever resolved: `eval` takes the
    text too (CPython 3.11 to 3.13 Lib/typing.py, class ForwardRef). On another Python nothing changes: 3.14
    compiles a name when it is resolved (Lib/annotationlib.py).
    """
    module: Any = typing
    if not _compiles_names():
        return
    module.compile = lambda text, *_, **__: text
    module.Optional = _Plain
    package: Any = pulumi
    package.Input = _Plain


def _compiles_names() -> bool:
    """Return whether `typing` compiles the names in quotes, and evaluates what that returned."""
    reference: Any = typing.ForwardRef
    methods = (getattr(reference, name, None) for name in ("__init__", "_evaluate"))
    made, evaluated = (getattr(getattr(one, "__code__", None), "co_names", ()) for one in methods)
    return "compile" in made and {"eval", "__forward_code__"} <= {*evaluated}


def with_short_searches() -> None:
    """Search for cycles among resources only where one is possible, and visit each resource once.

    For each dependency the SDK walks all that the other resource needs, by nested generators: 2.3 million
    steps for the 624 resources of dev-aws, an eighth of the time of its program (resource_cycle_breaker.py,
    `declare_dependency`). A resource that none needs yet closes no cycle.
    """
    module: Any = rpc
    module.declare_dependency = _declared


def _declared(from_resource: pulumi.Resource, to_resource: pulumi.Resource) -> bool:
    """Remember a dependency and return True, or return False if it closes a cycle."""
    if from_resource is to_resource:
        return False
    if _NEEDED in from_resource.__dict__ and _reaches(to_resource, from_resource):
        return False
    from_resource.__dict__.setdefault(_NEEDS, set()).add(to_resource)
    to_resource.__dict__[_NEEDED] = True
    return True


def _reaches(start: pulumi.Resource, goal: pulumi.Resource) -> bool:
    """Return whether a resource needs another one, directly or through others."""
    todo, seen = [start], {start}
    while todo:
        found: set[pulumi.Resource] = todo.pop().__dict__.get(_NEEDS, set())
        if goal in found:
            return True
        todo += found - seen
        seen |= found
    return False


def with_short_checks() -> None:
    """Ask the SDK's questions about values, types and outputs with fewer steps, and the same answers.

    It looks for unknown values in every output, text included (rpc.py, `contains_unknowns`), takes the same
    few types apart for every property (_types.py), and reads its settings, which are variables of a context,
    five times for every output (output.py, `_track`): together a sixth of the time of dev-aws' program.
    """
    module: Any = rpc
    module.contains_unknowns = _contains_unknowns
    types: Any = _types
    for name in ("_is_union_type", "_is_optional_type", "unwrap_type"):
        asked = getattr(types, name)
        if not hasattr(asked, "cache_info"):
            setattr(types, name, functools.cache(asked))
    output: Any = pulumi.Output
    output._track = _track


def _contains_unknowns(value: object) -> bool:
    """Return whether a value is unknown, or a part of it in lists and dictionaries."""
    if type(value) in _PLAIN:
        return False
    todo, seen = [value], set[int]()
    while todo:
        one = todo.pop()
        if isinstance(one, pulumi.output.Unknown):
            return True
        if isinstance(one, dict | list) and id(one) not in seen:
            seen.add(id(one))
            # A field of an output type may be called `values`.
            parts = dict.values(one) if isinstance(one, dict) else one
            todo += [part for part in parts if type(part) not in _PLAIN]
    return False


def _track(output: Any) -> None:
    """Remember an output until it is known; one that failed stays, for the end of the program."""
    outputs, lock = settings.SETTINGS.outputs, settings.SETTINGS.lock

    def known(data: asyncio.Future[Any]) -> None:
        if not data.cancelled() and data.exception() is None:
            with lock:
                outputs.discard(data)

    with lock:
        outputs.add(output._data)
    output._data.add_done_callback(known)


def wait_for_outputs_once() -> None:
    """Wait for all outputs of a running program together, before the SDK does so one by one.

    Whenever one of them is known, the SDK restarts waiting for all others (runtime/stack.py,
    `wait_for_rpcs`): 303,000 callbacks for the 365 resources of dev-gcp, growing with their square. It awaits
    running calls first; this becomes one of them.
    """
    settings._get_rpc_manager().rpcs.append(asyncio.ensure_future(_known()))


async def _known() -> None:
    """Wait until all outputs are known or one failed, which the SDK then reports."""
    calls = settings._get_rpc_manager()
    while calls.unhandled_exception is None:
        outputs = {*settings.SETTINGS.outputs}
        waiting = {one for one in outputs if not one.done()}
        if not waiting or any(one.cancelled() or one.exception() for one in outputs - waiting):
            return
        await asyncio.wait(waiting, timeout=_CHECK_S, return_when=asyncio.FIRST_EXCEPTION)
