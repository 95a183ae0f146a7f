"""The ledger of GPU-hours of teams, and their budgets."""
