"""How punctual Schedules are: Foresail beside Velero's own controller, and beside a bare loop of the same writes."""
