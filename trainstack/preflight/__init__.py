"""Read-only checks of an account or project before a deployment."""
