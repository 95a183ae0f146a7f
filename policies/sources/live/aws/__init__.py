"""Queries and tables for AWS accounts, a file per family of services."""
