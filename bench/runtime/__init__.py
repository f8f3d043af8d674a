"""Measures the runtime on real clusters, as a process of its own: scale, throughput beside a bare loop, timers."""
