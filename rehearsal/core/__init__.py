"""Shared parts of the emulated clouds: provider for the engine, state, journal, faults, rules."""
