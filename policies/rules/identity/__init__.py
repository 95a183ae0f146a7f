"""IAM: permissions and authentication."""
