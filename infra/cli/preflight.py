"""What a preview plans, held against the quotas of the account."""

from collections.abc import Callable, Mapping

from pulumi.automation.events import EngineEvent

from infra.catalog.aws.quotas import Planned, Shortfall, shortfalls
from infra.engine.stack import OnEvent, Outcome

_GONE = ("delete", "delete-replaced", "discard", "discard-replaced")


class Preflight:
    """Listens to a preview and reports every shortfall at once."""

    def __init__(self) -> None:
        self._planned: dict[str, Planned] = {}

    def listening(self, operation: Callable[[OnEvent], Outcome]) -> Callable[[OnEvent], Outcome]:
        """The same operation; its events come here too."""

        def run(on_event: OnEvent) -> Outcome:
            def take(event: EngineEvent) -> None:
                self._take(event)
                on_event(event)

            return operation(take)

        return run

    def _take(self, event: EngineEvent) -> None:
        if event.resource_pre_event is None:
            return
        step = event.resource_pre_event.metadata
        if getattr(step.op, "value", step.op) in _GONE or step.new is None:
            return
        name = step.urn.rsplit("::", 1)[-1]
        self._planned[step.urn] = Planned(step.type, name, dict(step.new.inputs or {}))

    def shortfalls(self, quotas: Mapping[str, float]) -> list[Shortfall]:
        """What the account may not have; `quotas` are known to differ from the defaults."""
        return shortfalls(self._planned.values(), quotas)
