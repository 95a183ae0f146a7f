"""The rules as a policy pack, which the Pulumi engine asks while it previews and deploys."""
