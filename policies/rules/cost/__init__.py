"""COST: budgets, prices and waste."""
