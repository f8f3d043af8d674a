"""What Velero is asked for: each field from the tenant's spec and the policy."""
