"""What is asked of a project of Google Cloud, and what its answers become."""
