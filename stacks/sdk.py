"""What the Pulumi SDK repeats in a large program, done once. No setting changes it (pulumi 3.272.0)."""

import asyncio

import pulumi
from pulumi.runtime import settings

_LOOK_S = 1.0


def without_debug_messages() -> None:
    """Keep the SDK from telling the engine every step that `pulumi up --debug` would show.

    It does so whether or not anybody asked: 1,857 calls for the 406 resources of dev-aws, and the program
    waits for each (log.py, `_log`).
    """
    pulumi.log.debug = lambda *_, **__: None


def wait_for_outputs_once() -> None:
    """Have a running program wait for all of its outputs together, before the SDK does so one by one.

    Whenever one of them is known, the SDK begins to wait for all others anew (runtime/stack.py,
    `wait_for_rpcs`): 303,000 callbacks for the 365 resources of dev-gcp, growing with their square. It awaits
    the calls that are under way first; this becomes one of them.
    """
    settings._get_rpc_manager().rpcs.append(asyncio.ensure_future(_known()))


async def _known() -> None:
    """Until all outputs are known or something failed, which the SDK then finds and tells."""
    calls = settings._get_rpc_manager()
    while calls.unhandled_exception is None:
        outputs = {*settings.SETTINGS.outputs}
        waiting = {one for one in outputs if not one.done()}
        if not waiting or any(one.cancelled() or one.exception() for one in outputs - waiting):
            return
        await asyncio.wait(waiting, timeout=_LOOK_S, return_when=asyncio.FIRST_EXCEPTION)
