"""The spec for Velero: each field from the tenant's spec and the policy."""
