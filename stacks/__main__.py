"""The Pulumi program: load the spec, compose the stack, export what it offers."""

import atexit
import gc
import sys

if __name__ == "__main__":
    # A process of seconds has no garbage worth looking for; during the imports alone a second goes into it,
    # and another one at its end, when Python looks through all that was imported.
    gc.disable()
    atexit.register(gc.freeze)

import pulumi

from infra import stackspec
from infra.errors import REFUSED, UserError
from infra.outputs import cluster as outputs
from infra.outputs import jobs as job_outputs
from infra.stackspec import StackSpec
from stacks import compose, sdk


def main() -> None:
    """Run once per `pulumi up` or `pulumi preview`."""
    config = pulumi.Config(stackspec.NAMESPACE)
    settings = {name: config.get(name) for name in stackspec.SETTINGS} | {"spec": config.get_object("spec")}
    given = {name: value for name, value in settings.items() if value is not None}
    stack = pulumi.get_stack()
    try:
        loaded = stackspec.load(stack, given, f"Pulumi.{stack}.yaml")
        deploy(loaded.spec)
    except UserError as error:
        raise pulumi.RunError(f"the spec of stack {stack} {REFUSED}\n{error}") from None


def deploy(spec: StackSpec) -> None:
    """Declare a stack and export what it offers, in a program that runs."""
    exported = outputs if spec.layout.has_cluster else job_outputs
    exported.export(compose(spec))
    sdk.wait_for_outputs_once()


if __name__ == "__main__":
    # The state keeps the calls that made each resource; those below the program would be a quarter of it.
    sys.tracebacklimit = 16
    sdk.without_debug_messages()
    main()
