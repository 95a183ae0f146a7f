"""Jobs that `up` waits for in place of states that it cannot await."""
