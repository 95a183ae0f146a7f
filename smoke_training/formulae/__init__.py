"""Formulae of the measures (pure)."""
