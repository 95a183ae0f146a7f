"""Emulated Google Cloud services that run or observe jobs: Vertex AI, Cloud Run, functions, Cloud Logging."""
