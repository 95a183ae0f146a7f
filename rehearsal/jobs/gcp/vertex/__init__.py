"""Custom jobs of Vertex AI that really run, and their lines in Cloud Logging."""
