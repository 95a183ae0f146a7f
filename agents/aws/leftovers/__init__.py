"""What runs on AWS Lambda when a domain is deleted; the standard library and boto3 only."""
