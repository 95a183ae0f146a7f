"""TAG: owner, purpose and end of life of resources."""
