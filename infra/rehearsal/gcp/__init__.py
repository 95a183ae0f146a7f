"""The emulated Google Cloud: schema-checked and generic."""
