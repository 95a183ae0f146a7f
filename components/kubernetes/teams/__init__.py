"""What a team has in its namespace besides its queue."""
