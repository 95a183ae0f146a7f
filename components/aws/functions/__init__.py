"""Python of this tree on AWS Lambda."""
