"""What runs inside every job of a managed training service, around the script of a team."""
