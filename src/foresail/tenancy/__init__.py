"""Tenants: which policy applies to a namespace, and whose a Velero object is."""
