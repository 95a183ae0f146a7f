"""Functions of the Google provider that many programs call, by subject."""
