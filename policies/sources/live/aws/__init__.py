"""What is asked of an AWS account, and what its answers become; a file for each family of services."""
