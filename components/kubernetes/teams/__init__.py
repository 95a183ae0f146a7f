"""Objects in a team's namespace besides its queue: claims, folders, checkpoint settings."""
