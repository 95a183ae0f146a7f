"""Rules about every other kind of object."""
