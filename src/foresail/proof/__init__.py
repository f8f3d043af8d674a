"""Proof: what is covered by backups, whether a backup would restore, and whether it did."""
