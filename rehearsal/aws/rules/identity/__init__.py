"""Rules about roles, policies and keys."""
