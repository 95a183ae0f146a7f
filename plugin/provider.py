"""The provider that the engine asks to construct components."""

from typing import Any

import pulumi
from pulumi.errors import InputPropertiesError, InputPropertyErrorDetails
from pulumi.provider import ConstructResult, Provider
from pulumi.provider.server import ComponentInitError

from components.base import Component
from infra.errors import Problem, UserError, nearest_first
from plugin import schema
from plugin.arguments import convert, translated
from plugin.exposed import EXPOSED, NAME, component
from plugin.shapes import arguments, camel, outputs


class ComponentPlugin(Provider):
    """Constructs the components of the package, each in the process of this plugin."""

    def __init__(self) -> None:
        super().__init__(schema.version(), schema.FILE.read_text(encoding="utf-8"))
        Component.output_name = camel  # type: ignore[method-assign]

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: Any,
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        """Create a component. Raises InputPropertiesError with every problem of its arguments."""
        try:
            known = component(_known(resource_type))
            args = convert(arguments(known), inputs)
            made = known(name, args, options)  # type: ignore[call-arg, arg-type]
        except UserError as error:
            details = [_details(problem) for problem in error.problems]
            raise InputPropertiesError(f"{resource_type} {name} cannot be created", details) from None
        except Exception as error:
            raise ComponentInitError(error) from error
        state = {one.public: getattr(made, one.name) for one in outputs(known).fields}
        return ConstructResult(made.urn, {key: value for key, value in state.items() if value is not None})


def _known(resource_type: str) -> str:
    package, _, name = resource_type.partition(":index:")
    if package == NAME and name in EXPOSED:
        return name
    fix = nearest_first(name, EXPOSED)
    raise UserError([Problem("type", resource_type, "no such component", fix, code="component-unknown")])


def _details(problem: Problem) -> InputPropertyErrorDetails:
    path, text = translated(problem)
    return {"property_path": path, "reason": text}
