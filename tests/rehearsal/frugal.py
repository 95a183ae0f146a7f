"""An engine that costs less, for tests that kill none and measure none."""

# Before and after each resource the engine writes all of them, unless it is told to write once, at the end:
# 34 of 42 s of its processor time for the 517 resources of dev-aws (pulumi v3.259.0, pkg/backend/snapshot.go,
# `unsafeServiceLoop`). People's deployments and rehearsals keep every checkpoint. A tenth of the rest is Go's
# collector of garbage.
FRUGAL = {"PULUMI_SKIP_CHECKPOINTS": "true", "GOGC": "400"}
