"""Records GPU-hours of teams and enforces their budgets."""
