"""Logs and results for tenants: the life of a NonAdminDownloadRequest."""
