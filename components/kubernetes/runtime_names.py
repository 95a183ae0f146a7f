"""Names of runtimes of Kubeflow Trainer, without the engine's packages."""

POOL_RUNTIME = "torch-"
"""Begins the name of the runtime of a pool; the pool's name follows."""
CLUSTER_RUNTIME = "ClusterTrainingRuntime"
"""Kind of runtimes of the cluster, and of a `runtimeRef` without one (its default in the definition)."""
