"""Names and ports that a run and the programs that start it agree on (the standard library only)."""

EXPERIMENT = "smoke-validation"
"""The one experiment of the tracking server that a validation writes to."""
RESULT_COPIES = "SMOKE_RESULTS"
"""Variable with the object store folder for node 0's copy of the result, where no file system has one."""
CONTROL_PORT_OFFSET = 1
"""Above the port of torchrun's rendezvous: node 0's launcher listens there."""
IAP = "trainstack-iap"
"""MLFLOW_TRACKING_AUTH of a server behind Identity-Aware Proxy: our plug-in for mlflow (`record.gcp.iap`)."""
FORKED = "SMOKE_FORKED"
"""Variable of torchrun with the number of ranks to fork, and of forked ranks, whose start has no imports."""
