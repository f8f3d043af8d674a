"""RestoreChecks: backups are restored into a fenced sandbox, and what arrives is compared with the backup."""
