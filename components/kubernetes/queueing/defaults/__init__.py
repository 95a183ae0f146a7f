"""What the API server adds to jobs: fields, limits, and the pools whose machines are large enough."""
