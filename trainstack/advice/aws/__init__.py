"""Advice on machines of AWS."""
