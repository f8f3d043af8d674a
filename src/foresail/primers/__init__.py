"""Capability 3: nodes and images that are warm before a CronJob fires."""
