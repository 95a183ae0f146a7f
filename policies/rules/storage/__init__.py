"""STO: access, encryption and retention of buckets, file systems and volumes."""
