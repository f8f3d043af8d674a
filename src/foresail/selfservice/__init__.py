"""Capability 2: teams back up and restore the namespace that they own, and can touch nothing else."""
