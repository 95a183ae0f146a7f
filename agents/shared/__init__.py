"""Modules that several programs share."""
