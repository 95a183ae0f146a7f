"""Rules by which a cloud refuses requests: one small rule per fact, each with its source."""
