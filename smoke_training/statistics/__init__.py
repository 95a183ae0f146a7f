"""Estimators and decision rules of the verdict (pure)."""
