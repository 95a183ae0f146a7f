"""Programs that run inside pods, jobs and cloud functions of a deployed stack: standard library only.

Programs on AWS Lambda may also use boto3, which is part of the runtime.
"""
