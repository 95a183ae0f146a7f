"""Counterpart of kube-proxy: the address of a Service, balanced over its ready pods."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping

from infra.engine.peers import is_own

# (address, port) of a pod, or the path of a socket; None while nothing is ready.
Choose = Callable[[], tuple[str, int] | str | None]
# Ports below 1024 may be denied to ordinary users: Services listen on these instead, and texts are rewritten.
PRIVILEGED = {port: 20000 + port for port in range(1, 1024)}
_CHUNK = 1 << 16


class Proxy:
    """TCP listeners on Service addresses, in a thread of their own until `stop`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: dict[tuple[str, int], asyncio.Server] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="service proxy", daemon=True)
        self._thread.start()

    def open(self, address: str, ports: Mapping[int, Choose]) -> None:
        """Listen on exactly these ports of an address. Raises OSError when one is taken."""
        asyncio.run_coroutine_threadsafe(self._open(address, ports), self._loop).result(10)

    def stop(self) -> None:
        """Close everything, connections too."""
        for address in {address for address, _ in self._servers}:
            self.open(address, {})
        asyncio.run_coroutine_threadsafe(_disconnected(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    async def _open(self, address: str, ports: Mapping[int, Choose]) -> None:
        for key in [key for key in self._servers if key[0] == address]:
            self._servers.pop(key).close()
        for port, choose in ports.items():
            listening = PRIVILEGED.get(port, port)
            server = await asyncio.start_server(_Relay(choose), address, listening, reuse_address=True)
            self._servers[address, listening] = server


class _Relay:
    """Joins a connection of this user with one to a pod; closes others, and all without a ready pod."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = is_own(writer.get_extra_info("sockname"), writer.get_extra_info("peername"))
        target = self._choose() if own else None
        try:
            if target is not None:
                back_reader, back_writer = await (
                    asyncio.open_unix_connection(target)
                    if isinstance(target, str)
                    else asyncio.open_connection(*target)
                )
                await asyncio.gather(_pump(reader, back_writer), _pump(back_reader, writer))
        except OSError:
            writer.transport.abort()
        finally:
            writer.close()


async def _disconnected() -> None:
    """End the relays of this loop: one that is collected later than its loop cannot close its connections."""
    relays = asyncio.all_tasks() - {asyncio.current_task()}
    for one in relays:
        one.cancel()
    await asyncio.gather(*relays, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until one side ends; then close the other."""
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        writer.transport.abort()
        return
    with contextlib.suppress(OSError, RuntimeError):
        writer.write_eof()
