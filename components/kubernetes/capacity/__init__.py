"""Pools with limited availability: capacity blocks with an end, and hours of the week."""
