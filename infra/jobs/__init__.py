"""Runs of a managed training service: pack, price, submit, follow, stop (docs/how-to/jobs.md).

Pure but for `pack` (reads a folder), `sagemaker` (asks the service) and `commit` (asks git). What differs
between services is behind `service.JobService`.
"""
