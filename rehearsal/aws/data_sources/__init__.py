"""Functions of the AWS provider that many programs call, by subject."""
