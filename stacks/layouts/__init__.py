"""Composition of stacks by layout: one module per layout, independent of the cloud."""
