"""Jobs that `up` waits for in place of what it cannot await, and the programs of their pods."""
