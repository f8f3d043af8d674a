"""Tenants' own storage locations: the life of a NonAdminBackupStorageLocation and of its approval."""
