"""Asks a real account what it has, and writes it down; what that means is judged elsewhere, and later."""
