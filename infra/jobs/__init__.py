"""Runs of a managed training service: pack, price, submit, follow, stop (docs/how-to/jobs.md).

Pure except `pack` (reads a folder), `aws/` and `gcp/` (call services) and `commit` (runs git). Services
implement `service.JobService`.
"""
