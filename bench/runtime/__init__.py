"""Measures the runtime on real clusters, as a process of its own: scale, throughput beside a bare loop, timers."""


class MeasurementError(Exception):
    """A figure could not be taken, for what was measured did not do what it was to do."""
