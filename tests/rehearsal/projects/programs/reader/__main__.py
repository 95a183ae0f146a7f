"""Reads what another project's stack exports."""

import pulumi

other = pulumi.StackReference(f"organization/website/{pulumi.get_stack()}")
pulumi.export("bucket", other.require_output("bucket"))
pulumi.export("password", other.require_output("password"))
