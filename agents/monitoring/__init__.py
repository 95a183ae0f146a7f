"""Programs of the monitoring namespace."""
