"""`foresail report`: coverage, calendar, failed runs and gaps in one file."""
