"""Foresail: self-service, punctual schedules and restore checks for Velero."""

__version__ = "0.1.0"
TAGLINE = "Self-service, punctual schedules and restore checks for Velero."
