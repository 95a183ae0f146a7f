"""Rehearsal of any Pulumi project: reading, workspace, run and report."""
