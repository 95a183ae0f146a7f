"""Base class of layers around a cloud, which delegates every method."""

from rehearsal.core.model import Call, CheckFailure, Diff, EmulatedCloud, Properties, ProviderInstance


class Wrapper(EmulatedCloud):
    """Delegates to the cloud inside."""

    def __init__(self, inside: EmulatedCloud) -> None:
        self.inside = inside
        self.package, self.version = inside.package, inside.version

    def canonical(self, token: str) -> str:
        """See `model.EmulatedCloud`."""
        return self.inside.canonical(token)

    def check_config(self, config: Properties) -> list[CheckFailure]:
        """See `model.EmulatedCloud`."""
        return self.inside.check_config(config)

    def replacing_settings(self, old: Properties, new: Properties) -> tuple[str, ...]:
        """See `model.EmulatedCloud`."""
        return self.inside.replacing_settings(old, new)

    def check(
        self, call: Call, old: Properties | None, new: Properties
    ) -> tuple[Properties, list[CheckFailure]]:
        """See `model.EmulatedCloud`."""
        return self.inside.check(call, old, new)

    def diff(
        self, call: Call, id: str, old_inputs: Properties, old_outputs: Properties, new: Properties
    ) -> Diff:
        """See `model.EmulatedCloud`."""
        return self.inside.diff(call, id, old_inputs, old_outputs, new)

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """See `model.EmulatedCloud`."""
        return self.inside.create(call, inputs, preview=preview)

    def read(self, call: Call, id: str, inputs: Properties) -> tuple[Properties, Properties] | None:
        """See `model.EmulatedCloud`."""
        return self.inside.read(call, id, inputs)

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """See `model.EmulatedCloud`."""
        return self.inside.update(call, id, old_outputs, inputs, preview=preview)

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """See `model.EmulatedCloud`."""
        self.inside.delete(call, id, outputs)

    def invoke(self, instance: ProviderInstance, token: str, args: Properties) -> Properties:
        """See `model.EmulatedCloud`."""
        return self.inside.invoke(instance, token, args)
