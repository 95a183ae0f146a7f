"""Teams on Google Cloud: access of their members, and their data."""
