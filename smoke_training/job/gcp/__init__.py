"""Jobs of Vertex AI."""
