"""The record of whose a Velero Backup is, and the signature by which it can be trusted after a disaster."""
