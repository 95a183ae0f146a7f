"""Journal of creates that no engine has confirmed, which are deleted by their URN.

An engine that is killed between a commit in the cloud and the update of its own state does not know the id of
the resource. Every create is therefore recorded before it begins, and confirmed by the first request in which
an engine uses its id.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rehearsal.core.model import Call, Diff, EmulatedCloud, Properties, ProviderInstance, Record, RefusalError
from rehearsal.core.state import State
from rehearsal.core.wrapper import Wrapper


class Journal:
    """The creates of one state, at most one at a time for a URN."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._busy: set[str] = set()
        self._changed = threading.Condition()

    @contextmanager
    def alone(self, urn: str) -> Iterator[None]:
        """Wait until no create for this URN is in progress: that of a killed engine may still be."""
        with self._changed:
            self._changed.wait_for(lambda: urn not in self._busy)
            self._busy.add(urn)
        try:
            yield
        finally:
            with self._changed:
                self._busy.discard(urn)
                self._changed.notify_all()

    def begin(self, call: Call) -> None:
        """Record that a create begins."""
        self._state.begin_create(call.instance.package, call.type, call.urn, call.instance.config)

    def confirm(self, call: Call, id: str) -> None:
        """Record that the engine knows an id."""
        self._state.confirm(call.type, call.urn, id)

    def take_back(self, cloud: EmulatedCloud, urn: str) -> str | None:
        """Delete what an interrupted create left behind; returns its id, or None. Call it inside `alone`."""
        found = self._state.unconfirmed(urn)
        if found is None:
            return None
        record, config = found
        instance = ProviderInstance(record.package, config)
        call = Call(instance, record.type, urn, threading.Event(), lambda _severity, _message: None)
        try:
            cloud.delete(call, record.id, record.outputs)
        except RefusalError:
            # Such as a protected database: no state holds its id, so no program could remove its protection.
            self._forget(record)
        if self._state.unconfirmed(urn) is not None:
            self._forget(record)
        return record.id

    def _forget(self, record: Record) -> None:
        with self._state.transaction():
            for reference in self._state.users(record):
                if not reference.user.urn:  # created by the service together with this one
                    self._forget(reference.user)
            self._state.remove(record)


class Journaled(Wrapper):
    """A cloud whose creates are recorded in the journal."""

    def __init__(self, inside: EmulatedCloud, journal: Journal) -> None:
        super().__init__(inside)
        self._journal = journal

    def diff(
        self, call: Call, id: str, old_inputs: Properties, old_outputs: Properties, new: Properties
    ) -> Diff:
        """See `model.EmulatedCloud`."""
        self._journal.confirm(call, id)
        return self.inside.diff(call, id, old_inputs, old_outputs, new)

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """See `model.EmulatedCloud`."""
        if preview:
            return self.inside.create(call, inputs, preview=True)
        with self._journal.alone(call.urn):
            left = self._journal.take_back(self.inside, call.urn)
            if left is not None:
                call.log("info", f"deleted {left}, which an interrupted run had left behind")
            self._journal.begin(call)
            return self.inside.create(call, inputs, preview=False)

    def read(self, call: Call, id: str, inputs: Properties) -> tuple[Properties, Properties] | None:
        """See `model.EmulatedCloud`."""
        self._journal.confirm(call, id)
        return self.inside.read(call, id, inputs)

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """See `model.EmulatedCloud`."""
        self._journal.confirm(call, id)
        return self.inside.update(call, id, old_outputs, inputs, preview=preview)

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """See `model.EmulatedCloud`."""
        self._journal.confirm(call, id)
        self.inside.delete(call, id, outputs)
