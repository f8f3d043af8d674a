"""Wiring only: settings and main of the operator process."""
