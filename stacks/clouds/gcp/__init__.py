"""Google Cloud: implementation of the protocols of `stacks.parts` with components."""
