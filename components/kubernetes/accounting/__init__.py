"""GPU-hours of teams, counted from the queues, and the budgets that they are held against."""
