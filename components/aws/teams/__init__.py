"""Teams on AWS: access of their members, and their data."""
