"""Jobs that `up` waits for."""
