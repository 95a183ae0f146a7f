"""Behaviour of services beyond table rows: `HOOKS` of a module maps a type (without `gcp:`) to hooks."""
