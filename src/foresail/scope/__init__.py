"""What a Velero Backup or Schedule covers, as Velero 1.17 or 1.18 decides it: kinds, objects and volumes."""
