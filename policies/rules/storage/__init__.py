"""STO: buckets, file systems, volumes: who reads them, how long they last."""
