"""`foresail backup schedule`: tenants' own schedules."""
