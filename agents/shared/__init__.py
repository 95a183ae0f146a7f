"""Modules that several programs use."""
