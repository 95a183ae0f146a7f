"""Base class of all components: type token and options of children."""

from collections.abc import Callable
from inspect import get_annotations

import pulumi

Options = pulumi.ResourceOptions | None
"""Options of a component or resource, as its caller gives them."""
Child = Callable[..., pulumi.ResourceOptions]
"""`Component.child` of a component whose resources a function creates."""


class Component(pulumi.ComponentResource):
    """A `trainstack:index:<Class>` component.

    Children get `self.child()`: a fresh set of options, so that `aliases`, `protect` or `ignore_changes` that
    a caller sets on the component are not copied onto every child.
    """

    def __init__(self, name: str, opts: Options = None) -> None:
        super().__init__(f"trainstack:index:{type(self).__name__}", name, None, opts)

    def child(self, opts: Options = None) -> pulumi.ResourceOptions:
        """Options for a child resource: this component as parent, plus only what `opts` adds."""
        return pulumi.ResourceOptions.merge(pulumi.ResourceOptions(parent=self), opts)

    @staticmethod
    def output_name(name: str) -> str:
        """The name under which an attribute is registered; the plugin sets that of other languages."""
        return name

    def register_declared(self) -> None:
        """Register the outputs: the attributes that the class annotates."""
        names = get_annotations(type(self))
        self.register_outputs({Component.output_name(name): getattr(self, name) for name in names})
