"""Decisions about used-up budgets, the same on every cloud; standard library only."""
