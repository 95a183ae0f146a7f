"""Injection of faults into the operations of any cloud, with the retries of the real providers."""

import hashlib
import logging
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from rehearsal.core.model import Call, EmulatedCloud, Properties, RefusalError
from rehearsal.core.packages import CLOUDS
from rehearsal.core.properties import walk
from rehearsal.core.wrapper import Wrapper

_LOG = logging.getLogger("rehearsal")
_RETRY_AFTER_S = 1.0
_BACKOFF_S = 0.2
_LONGEST_BACKOFF_S = 5.0
_PLUGIN = "rehearsal.plugin"


class FaultPlan:
    """The faults in `faults.json`, counted from the moment it was written; shared by every provider."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._seed = 0
        self._faults: tuple[Any, ...] = ()
        self._interruptions: list[Any] = []  # not used yet
        self._met: Counter[int] = Counter()
        self._hidden: dict[str, float] = {}  # identifier -> monotonic time of its appearance
        self._expired: set[str] = set()  # packages whose login has ended

    def hitting(self, operation: str, call: Call) -> list[Any]:
        """The faults (`faults.CloudFault`) that hit this operation; call it once for each operation."""
        with self._lock:
            self._reload()
            return [fault for index, fault in enumerate(self._faults) if self._hits(index, operation, call)]

    def interruption(self, name: str) -> float | None:
        """Seconds of training after which the spot job of this name is interrupted; None: it is not.

        Each interruption is returned once.
        """
        with self._lock:
            self._reload()
            for fault in self._interruptions:
                if fault.name in (None, name):
                    self._interruptions.remove(fault)
                    return float(fault.seconds)
        return None

    def hide(self, values: set[str], seconds: float) -> None:
        """Hide a resource from other resources for a while."""
        with self._lock:
            self._hidden.update(dict.fromkeys(values, time.monotonic() + seconds))

    def expire(self, package: str) -> None:
        """End the login of a cloud until the faults change."""
        with self._lock:
            self._expired.add(package)

    def expired(self, package: str) -> bool:
        """Return whether the login of a cloud has ended."""
        return package in self._expired

    def unseen(self, inputs: Properties) -> tuple[str, float] | None:
        """An identifier in `inputs` that is still hidden and the remaining seconds, or None."""
        if not self._hidden:
            return None
        now = time.monotonic()
        with self._lock:
            for _, value in walk(inputs):
                if isinstance(value, str) and self._hidden.get(value, 0.0) > now:
                    return value, self._hidden[value] - now
        return None

    def _hits(self, index: int, operation: str, call: Call) -> bool:
        fault = self._faults[index]
        if not fault.matches(operation, call.type):
            return False
        if fault.name is not None:
            return bool(fault.name == call.name)
        if fault.probability is not None:
            drawn = hashlib.sha256(f"{self._seed}/{index}/{operation}/{call.urn}".encode()).digest()
            return bool(int.from_bytes(drawn[:6], "big") / 2**48 < fault.probability)
        self._met[index] += 1
        return self._met[index] == (fault.nth or 1)

    def _reload(self) -> None:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            self._seen, self._faults, self._interruptions = None, (), []
            self._expired.clear()
            return
        seen = (status.st_mtime_ns, status.st_ino, status.st_size)
        if seen == self._seen:
            return
        from rehearsal.core import faults  # noqa: PLC0415 - the daemon starts without pydantic

        found = faults.read(self._path)
        self._seed, self._faults, self._interruptions = found.seed, found.faults, list(found.interruptions)
        self._seen = seen
        self._met.clear()
        self._expired.clear()
        self._hidden.clear()


class FaultInjector(Wrapper):
    """The cloud of one engine, with faults. `engine` is the process that a fault may kill."""

    def __init__(self, inside: EmulatedCloud, plan: FaultPlan, engine: int) -> None:
        super().__init__(inside)
        self._plan, self._engine = plan, engine
        responses = CLOUDS[inside.package].faults
        assert responses is not None
        self._responses = responses

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """See `model.EmulatedCloud`; previews have no faults."""
        if preview:
            return self.inside.create(call, inputs, preview=True)
        faults = self._plan.hitting("create", call)
        self._await_visible(call, inputs)
        self._before(call, faults)
        identifier, outputs = self.inside.create(call, inputs, preview=False)
        for fault in faults:
            if fault.kind == "eventual":
                self._plan.hide(_identifiers(identifier, outputs), fault.duration_s)
        self._after(call, faults)
        return identifier, outputs

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """See `model.EmulatedCloud`; previews have no faults."""
        faults = [] if preview else self._plan.hitting("update", call)
        if not preview:
            self._await_visible(call, inputs)
        self._before(call, faults)
        outputs = self.inside.update(call, id, old_outputs, inputs, preview=preview)
        self._after(call, faults)
        return outputs

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """See `model.EmulatedCloud`."""
        faults = self._plan.hitting("delete", call)
        self._before(call, faults)
        self.inside.delete(call, id, outputs)
        self._after(call, faults)

    def _before(self, call: Call, faults: list[Any]) -> None:
        for fault in faults:
            if fault.kind != "crash-after":
                _LOG.info("fault %s on %s", fault.kind, call.urn)
            if fault.kind == "throttling":
                self._retry(call, fault.times, self._responses.throttled, retry_after=True)
            elif fault.kind == "transient":
                self._retry(call, fault.times, self._responses.transient, retry_after=False)
            elif fault.kind == "slow":
                call.log("info", f"fault: takes {fault.duration_s:g} s longer")
                self._slow(call, fault.duration_s)
            elif fault.kind == "capacity":
                raise self._responses.no_capacity(call.type, call.name)
            elif fault.kind == "quota":
                raise self._responses.over_quota(call.type, call.name)
            elif fault.kind == "expired":
                self._plan.expire(self.package)
            elif fault.kind == "crash-before":
                kill(fault.victim, self._engine, self.package)
        if self._plan.expired(self.package):
            raise RefusalError(*self._responses.expired)

    def _after(self, call: Call, faults: list[Any]) -> None:
        for fault in faults:
            if fault.kind == "crash-after":
                _LOG.info("fault %s on %s", fault.kind, call.urn)
                kill(fault.victim, self._engine, self.package)

    def _retry(self, call: Call, times: int, response: tuple[str, str], *, retry_after: bool) -> None:
        """Retry with the waits and the limit of the provider's client."""
        for attempt in range(1, times + 1):
            if attempt > self._responses.retries:
                raise RefusalError(*response, "The provider stopped retrying.")
            backoff = min(_BACKOFF_S * 2 ** (attempt - 1), _LONGEST_BACKOFF_S)
            wait = _RETRY_AFTER_S if retry_after else backoff
            retry = f"retry after {wait:g} s" if retry_after else f"next try in {wait:g} s"
            call.log("info", f"{response[0]}: {response[1]}; {retry} (try {attempt})")
            _wait(call, wait)

    def _slow(self, call: Call, seconds: float) -> None:
        if call.timeout_s is not None and call.timeout_s < seconds:
            _wait(call, call.timeout_s)
            raise RefusalError(
                "Timeout", f"timeout while waiting for {call.name} (timeout: {call.timeout_s:g}s)"
            )
        _wait(call, seconds)

    def _await_visible(self, call: Call, inputs: Properties) -> None:
        """Retry, as the provider does, while a resource that this one refers to is hidden."""
        while (found := self._plan.unseen(inputs)) is not None:
            value, seconds = found
            call.log("info", f"{value} cannot be seen yet; retrying")
            _wait(call, min(seconds, 0.5))


def kill(victim: str, engine: int, package: str) -> None:
    """Kill a process of the run: this daemon, the engine, its program or a package's provider."""
    if victim == "daemon":
        os.kill(os.getpid(), signal.SIGKILL)
    for process in _victims(victim, engine, package):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
        _LOG.info("killed the %s (%d)", victim, process.pid)


def _victims(victim: str, engine: int, package: str) -> list[psutil.Process]:
    """Processes of one engine. Its children are plugins of ours and language hosts, which run programs."""
    try:
        root = psutil.Process(engine)
        if victim == "engine":
            return [root]
        plugins, programs = [], []
        for child in root.children():
            command = " ".join(child.cmdline())
            if _PLUGIN in command or "/pulumi-resource-" in command:
                plugins += [child] if package in command else []
            else:
                programs += [*child.children(recursive=True), child]
    except psutil.NoSuchProcess:
        return []
    return plugins if victim == "provider" else programs


def _wait(call: Call, seconds: float) -> None:
    if call.cancelled.wait(seconds):
        raise RefusalError("RequestCanceled", f"{call.name}: the update was cancelled while it waited")


def _identifiers(id: str, outputs: Properties) -> set[str]:
    """The values by which other resources would refer to this one."""
    values = (id, outputs.get("arn"), outputs.get("name"), outputs.get("selfLink"))
    return {value for value in values if isinstance(value, str) and value}
