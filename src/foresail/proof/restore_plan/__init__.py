"""What a restore would do to each item of a backup, by Velero's rules; pure."""
