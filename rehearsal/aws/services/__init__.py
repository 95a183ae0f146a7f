"""Hooks by service: `HOOKS` of each module maps a type (without `aws:`) to its hooks."""
