"""Dispatcher of the manager of several clusters."""
