"""IAM: who may do what, and how they prove who they are."""
