"""Reserved capacity of AWS."""
