"""Foresail: self-service, punctual schedules and restore checks for Velero."""

__version__ = "0.1.0"
RUNBOOKS = ""  # a release has the address of its own docs/runbooks.md
TAGLINE = "Self-service, punctual schedules and restore checks for Velero."
