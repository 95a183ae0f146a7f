"""Pools that may be used for a time only: blocks of capacity with an end, and hours of the week."""
