"""What a stack of each size consists of: one module per profile; none knows a cloud."""
