"""TAG: who owns what, for what it is, and until when."""
