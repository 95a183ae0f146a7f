"""Managed notebooks on Google Cloud: Vertex AI Workbench."""
