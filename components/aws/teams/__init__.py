"""What a team has on AWS: who its members are, and its part of the data."""
