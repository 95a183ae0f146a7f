"""Mail about alerts that a pod of the cluster writes to its log."""
