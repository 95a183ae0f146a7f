"""Base of `random` and `tls`: a resource is computed once, then lives in the engine's state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rehearsal.core.model import (
    UNKNOWN,
    Call,
    CheckFailure,
    Diff,
    EmulatedCloud,
    Properties,
    ProviderInstance,
    RefusalError,
)
from rehearsal.core.properties import changed, has_unknown, without_none
from rehearsal.core.rules.pinning import judged
from rehearsal.core.rules.wording import unknown_function, unknown_type
from rehearsal.core.schema import Schemas
from rehearsal.core.validate import validate


@dataclass(frozen=True)
class Maker:
    """A resource type: constructor, defaults, properties that change in place, and import."""

    make: Callable[[Properties], tuple[str, Properties]]
    """Inputs with defaults -> id and computed outputs; raises RefusalError."""
    defaults: Properties = field(default_factory=dict)
    in_place: frozenset[str] = frozenset()
    adopt: Callable[[str], Properties] | None = None
    """The id given to `pulumi import` -> outputs; raises ValueError for any other id."""


class HelperCloud(EmulatedCloud):
    """Serves every provider of a helper package; stateless and thread-safe."""

    def __init__(
        self,
        schemas: Schemas,
        makers: Mapping[str, Maker],
        functions: Mapping[str, Callable[[Properties], Properties]],
    ) -> None:
        self.package = schemas.package
        self.version = schemas.version
        self._schemas, self._makers, self._functions = schemas, makers, functions

    def check_config(self, config: Properties) -> list[CheckFailure]:
        """Accept any configuration."""
        return []

    def replacing_settings(self, old: Properties, new: Properties) -> tuple[str, ...]:
        """None."""
        del old, new
        return ()

    def check(
        self, call: Call, old: Properties | None, new: Properties
    ) -> tuple[Properties, list[CheckFailure]]:
        """Validate the inputs by the schema."""
        schema = self._schemas.resource(call.type)
        inputs = without_none(new)
        if schema is None or call.type not in self._makers:
            return inputs, judged(call, self.version, [unknown_type(self.package, self.version, call.type)])
        return inputs, judged(call, self.version, validate(schema, inputs))

    def diff(
        self, call: Call, id: str, old_inputs: Properties, old_outputs: Properties, new: Properties
    ) -> Diff:
        """Nearly every change forces a replacement."""
        paths = tuple(changed(without_none(old_inputs), without_none(new)))
        paths = tuple(path for path in paths if not path.startswith("__"))
        in_place = self._makers[call.type].in_place
        return Diff(paths, tuple(path for path in paths if path not in in_place))

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """Compute the value; a preview knows the inputs only."""
        maker = self._makers[call.type]
        given = {**maker.defaults, **{key: value for key, value in inputs.items() if key[:2] != "__"}}
        if preview or has_unknown(given):
            schema = self._schemas.resource(call.type)
            assert schema is not None
            return "", {**dict.fromkeys(schema.outputs, UNKNOWN), **given}
        identifier, computed = maker.make(given)
        return identifier, {**given, **computed}

    def read(self, call: Call, id: str, inputs: Properties) -> tuple[Properties, Properties] | None:
        """Return the values of the engine's state; for an import, those of the id."""
        if call.remembered:
            return inputs, call.remembered
        adopt = self._makers[call.type].adopt
        if adopt is None:
            raise RefusalError("ImportNotSupported", f"{call.type} cannot be imported.")
        try:
            outputs = {**self._makers[call.type].defaults, **adopt(id)}
        except ValueError as error:
            raise RefusalError("InvalidImportId", f"{id!r} is not an id of {call.type}: {error}") from error
        schema = self._schemas.resource(call.type)
        taken = {key: value for key, value in outputs.items() if schema and key in schema.inputs}
        return taken, outputs

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """Merge the inputs; a change in place affects no computed value."""
        return {**old_outputs, **inputs}

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """Do nothing: the value lives in the engine's state alone."""

    def invoke(self, instance: ProviderInstance, token: str, args: Properties) -> Properties:
        """A function such as `tls:index/getPublicKey:getPublicKey`."""
        name = token.rpartition(":")[2]
        function = self._functions.get(name)
        if function is None:
            raise unknown_function(token, name, self._functions, "rehearsal/helpers")
        return function(args)
