"""Spec, catalog, engine, rehearsal and command line of trainstack."""
