"""What runs on AWS Lambda when a budget is used up; the standard library and boto3 only."""
