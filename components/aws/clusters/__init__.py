"""Access of the manager of several clusters to workers on AWS: roles, and networks (docs/adr/0094)."""
