"""Measurements and long comparisons: what `make bench-cron`, `make cron-oracle` and `make cron-fuzz` run."""
