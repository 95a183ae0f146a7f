"""Execution of a job of any managed service: its thread, machines and programs."""
