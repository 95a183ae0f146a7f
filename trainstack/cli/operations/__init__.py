"""Operations on one stack, and what they print."""
