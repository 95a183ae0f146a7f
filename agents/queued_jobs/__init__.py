"""Reasons why queued jobs do not start, as Events of the jobs, and retries that members ask for."""
