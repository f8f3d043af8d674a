"""The names that Foresail writes on objects: annotations by which it knows later what it did."""

OBSERVED = "foresail.dev/observed"
"""On a Schedule: what was last seen of it, as far as a later decision depends on that."""

SCHEDULE_UID = "foresail.dev/schedule-uid"
SLOT = "foresail.dev/slot"
"""On a Backup, both together: which Schedule it was made for, and the instant at which it was due."""
