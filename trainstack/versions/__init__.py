"""What a stack pins, what is newer, and what taking it would end."""
