"""The rules as a policy pack for previews and updates of the Pulumi engine."""
