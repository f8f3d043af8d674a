"""Wiring only: settings, main, metrics and health of the operator process."""
