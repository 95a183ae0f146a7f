"""Base class of all components: type token and options of children."""

import pulumi


class Component(pulumi.ComponentResource):
    """A `trainstack:index:<Class>` component.

    Children get `self.child()`: a fresh set of options, so that `aliases`, `protect` or `ignore_changes` that
    a caller sets on the component are not copied onto every child.
    """

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(f"trainstack:index:{type(self).__name__}", name, None, opts)

    def child(self, opts: pulumi.ResourceOptions | None = None) -> pulumi.ResourceOptions:
        """Options for a child resource: this component as parent, plus only what `opts` adds."""
        return pulumi.ResourceOptions.merge(pulumi.ResourceOptions(parent=self), opts)
