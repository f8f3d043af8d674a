"""`foresail rollback`: a namespace back to a backup, in place, and back again."""
