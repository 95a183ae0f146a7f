"""Prices of the resources of any Pulumi project, from a preview: no spec, no program of ours."""
