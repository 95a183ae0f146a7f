"""How often the engine writes its state, where no test kills it."""

# Before and after each resource it writes all of them, unless it is told to write once, at the end: 34 of 42
# s of its processor time for the 517 resources of dev-aws (pulumi v3.259.0, pkg/backend/snapshot.go,
# `unsafeServiceLoop`). People's deployments and rehearsals keep every checkpoint.
ONCE = {"PULUMI_SKIP_CHECKPOINTS": "true"}
