"""Foresail makes Velero backups self-service, punctual and pre-warmed."""

__version__ = "0.1.0"
