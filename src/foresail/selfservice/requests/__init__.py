"""The life of a NonAdminBackup or NonAdminRestore."""
