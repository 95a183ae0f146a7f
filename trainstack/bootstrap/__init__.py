"""Resources that a client's administrator creates before the first deployment: printed, never applied."""
