"""Rules about pods and what makes them."""
