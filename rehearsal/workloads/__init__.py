"""A small kubelet: runs pods of the emulated clusters as processes of this machine."""
