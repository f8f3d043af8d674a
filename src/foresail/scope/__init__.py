"""What a Velero Backup or Schedule covers: namespaces, kinds, objects and volumes, as Velero 1.18 decides it."""
