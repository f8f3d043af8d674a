"""Measurements of primers on real clusters: `make bench-primers` runs them, docs/benchmarks.md says what came out."""
