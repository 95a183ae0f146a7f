"""Additions of the API server to jobs: fields, limits, and the pools whose machines are large enough."""
