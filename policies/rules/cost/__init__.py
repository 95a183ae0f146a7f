"""COST: what a stack may spend, and who hears of it."""
