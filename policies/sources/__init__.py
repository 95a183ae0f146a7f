"""Where resources come from: each module turns what a tool wrote into the one record that rules see."""
