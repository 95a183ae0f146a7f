"""Control frameworks as data: which rules are evidence for which controls, and who has checked that."""
