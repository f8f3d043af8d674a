"""`foresail recovery-key`: the keys by which a rebuilt cluster recognises its tenants' backups."""
