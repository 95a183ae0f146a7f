"""Managed services of the emulated clouds that run jobs and functions."""
