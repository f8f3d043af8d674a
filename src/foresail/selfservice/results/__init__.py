"""Why a backup or restore failed: Velero's results, read once and shown in the condition."""
