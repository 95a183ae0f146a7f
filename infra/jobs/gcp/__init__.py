"""Vertex AI as the service of runs: custom jobs, their lines in Cloud Logging, their code in a bucket."""
