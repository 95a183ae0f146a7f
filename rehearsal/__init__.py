"""The emulated clouds: resource providers for aws, gcp and kubernetes behind the real Pulumi engine."""
