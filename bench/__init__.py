"""Measurements and long comparisons: what `make help` lists as such runs from here."""


class MeasurementError(Exception):
    """A figure could not be taken, for what was measured did not do what it was to do."""
