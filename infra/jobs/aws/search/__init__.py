"""Hyperparameter searches by the service: declaration, request and description (pure)."""
