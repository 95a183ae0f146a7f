"""The Pulumi engine: how the CLI is found or built, and how it is driven and watched."""
