"""What a team has on Google Cloud: who its members are, and its part of the data."""
