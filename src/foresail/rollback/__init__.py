"""Rollback: a namespace back to the state of a backup, in place and as the requester, with an undo."""
