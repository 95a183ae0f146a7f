"""The Pulumi program: load the spec, compose the stack, export what it offers."""

import gc
import sys

if __name__ == "__main__":
    # A process of seconds has no garbage worth looking for; during the imports alone a second goes into it.
    gc.disable()

import pulumi

from infra import outputs, stackspec
from infra.errors import REFUSED, UserError
from stacks import compose


def main() -> None:
    """Run once per `pulumi up` or `pulumi preview`."""
    config = pulumi.Config(stackspec.NAMESPACE)
    settings = {name: config.get(name) for name in stackspec.SETTINGS} | {"spec": config.get_object("spec")}
    given = {name: value for name, value in settings.items() if value is not None}
    stack = pulumi.get_stack()
    try:
        loaded = stackspec.load(stack, given, f"Pulumi.{stack}.yaml")
        outputs.export(compose(loaded.spec))
    except UserError as error:
        raise pulumi.RunError(f"the spec of stack {stack} {REFUSED}\n{error}") from None


def without_debug_messages() -> None:
    """Keep the SDK from telling the engine every step that `pulumi up --debug` would show.

    It does so whether or not anybody asked: 1,857 calls for the 406 resources of dev-aws, and the program
    waits for each (pulumi 3.272.0, log.py, `_log`). There is no setting for it.
    """
    pulumi.log.debug = lambda *_, **__: None


if __name__ == "__main__":
    # The state keeps the calls that made each resource; those below the program would be a quarter of it.
    sys.tracebacklimit = 16
    without_debug_messages()
    main()
