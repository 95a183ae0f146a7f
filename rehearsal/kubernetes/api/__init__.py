"""Emulated API server: admission, names, diffs, finalizers, waiting."""
