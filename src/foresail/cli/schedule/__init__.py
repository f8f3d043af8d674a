"""`foresail schedule`: Velero's Schedules, with when they run next, how the last run ended and why one waits."""
