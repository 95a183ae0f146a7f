"""Emulated Vertex AI: custom jobs that run as local processes."""
