"""Capability 1: Velero Schedules that fire on time, never pile up and say when they run next."""
