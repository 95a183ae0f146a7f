"""Programs of the Jobs that `up` waits for."""
