"""Deploy-time validation of distributed training: measure, decide, attribute, record.

Self-contained: the standard library and torch, nothing else of this repository, because the package reaches
a cluster as one zip.
"""
