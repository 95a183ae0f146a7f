"""Component plugin: our components as a Pulumi package for programs in any language."""
