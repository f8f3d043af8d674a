"""Schedules of tenants: each due slot of a NonAdminSchedule becomes a NonAdminBackup."""
