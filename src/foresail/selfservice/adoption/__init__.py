"""Adoption: a Velero Backup of a tenant that has no NonAdminBackup gets one, if it is trusted."""
