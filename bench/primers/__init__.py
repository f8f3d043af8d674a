"""Measurements of primers on real clusters: `make bench-primers`; figures in docs/contributing/benchmarks.md."""
