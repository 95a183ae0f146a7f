"""A small kubelet: pods of the emulated clusters as processes of this machine."""
