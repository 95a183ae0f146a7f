"""What a plan of the engine ends: nodes, and data of people."""
