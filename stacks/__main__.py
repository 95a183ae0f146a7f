"""The Pulumi program: load the spec, compose the stack, export its outputs."""

import atexit
import gc
import sys

if __name__ == "__main__":
    # A process of a few seconds needs no garbage collection, which takes one second during imports and
    # another at exit.
    gc.disable()
    atexit.register(gc.freeze)

import pulumi

from infra import stackspec
from infra.errors import REFUSED, UserError
from infra.outputs import cluster as outputs
from infra.outputs import jobs as job_outputs
from infra.outputs import manager as manager_outputs
from infra.outputs import slurm as slurm_outputs
from infra.stackspec import StackSpec
from infra.stackspec.several.derived import ClusterMember
from infra.stackspec.slurm.layout import SlurmLayout
from stacks import compose, sdk


def main() -> None:
    """Run once per `pulumi up` or `pulumi preview`."""
    config = pulumi.Config(stackspec.NAMESPACE)
    settings = {name: config.get(name) for name in stackspec.SETTINGS} | {"spec": config.get_object("spec")}
    given = {name: value for name, value in settings.items() if value is not None}
    stack = pulumi.get_stack()
    try:
        loaded = stackspec.load(stack, given, f"Pulumi.{stack}.yaml")
        deploy(loaded.spec, loaded.member)
    except UserError as error:
        raise pulumi.RunError(f"the spec of stack {stack} {REFUSED}\n{error}") from None


def deploy(spec: StackSpec, member: ClusterMember | None = None) -> None:
    """Declare a stack and export its outputs, in a running program."""
    if isinstance(spec.layout, SlurmLayout):
        slurm_outputs.export(compose(spec))
    else:
        of_cluster = manager_outputs if spec.layout.several else outputs
        exported = of_cluster if spec.layout.has_cluster else job_outputs
        exported.export(compose(spec, member))
    sdk.wait_for_outputs_once()


if __name__ == "__main__":
    # The state stores the stack trace of each resource; frames below the program would be a quarter of it.
    sys.tracebacklimit = 16
    sdk.without_debug_messages()
    sdk.with_short_searches()
    sdk.with_short_checks()
    main()
