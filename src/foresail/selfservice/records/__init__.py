"""The ownership record of a Velero Backup, and the signature that makes it trustworthy after a disaster."""
